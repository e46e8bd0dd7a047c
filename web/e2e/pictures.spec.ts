import { fileURLToPath } from 'node:url'
import { expect, test } from '@playwright/test'
import { live } from './fixture.ts'

// The pictures of the book, of the service that LEEWARD names. They are made anew by `npm run pictures`, and are no test.

const SERVICE = process.env['LEEWARD'] ?? ''
const FOLDER = process.env['PICTURES_TO'] ?? fileURLToPath(new URL('../../docs/pictures/', import.meta.url))
const PICTURES: [string, string, 'light' | 'dark'][] = [
  ['racks', 'racks', 'light'],
  ['rack', 'racks/r12', 'light'],
  ['decisions', 'decisions', 'light'],
  ['hotspots', 'hotspots', 'dark'],
]

for (const [name, path, colorScheme] of PICTURES)
  test(`picture of ${name}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.goto(`${SERVICE}/#/${path}`)
    await live(page)
    if (name === 'decisions') {
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.locator('.list a', { hasText: 'replicas' }).nth(2).click()
      await expect(page.getByRole('region', { name: /^As decided/ }).first()).toBeVisible()
      const other = page.getByLabel(/What if/)
      if (await other.isVisible()) {
        await other.selectOption('uniform')
        await expect(page.getByText(/^uniform would/)).toBeVisible()
      }
    }
    // Rates are known of two statuses.
    await page.waitForTimeout(7000)
    await page.screenshot({ path: `${FOLDER}/dashboard-${name}.png` })
  })
