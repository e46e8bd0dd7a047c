import { fileURLToPath } from 'node:url'
import { expect, live, pass, test } from './fixture.ts'

// The pictures of the book. They are made anew by `npm run pictures`, and are no test.
test.skip(!process.env['PICTURES'], 'pictures are made by `npm run pictures`')

const FOLDER = fileURLToPath(new URL('../../docs/pictures/', import.meta.url))
const PICTURES: [string, string, 'light' | 'dark'][] = [
  ['demo', '', 'light'],
  ['racks', 'racks', 'light'],
  ['racks-dark', 'racks', 'dark'],
  ['rack', 'racks/r12', 'light'],
  ['decisions', 'decisions', 'light'],
  ['hotspots', 'hotspots', 'dark'],
  ['workloads', 'workloads', 'light'],
]

for (const [name, path, colorScheme] of PICTURES)
  test(`picture of ${name}`, async ({ page, open }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    const mock = await open(path, { demo: true, seed: 1 })
    await live(page)
    await pass(mock, page, 3)
    if (name === 'decisions') {
      await page.locator('.list a', { hasText: 'replicas' }).nth(2).click()
      await page.getByLabel(/What if/).selectOption('uniform')
      await expect(page.getByText(/^uniform would/)).toBeVisible()
    }
    await page.waitForTimeout(1800)
    await page.screenshot({ path: `${process.env['PICTURES_TO'] ?? FOLDER}dashboard-${name}.png` })
  })
