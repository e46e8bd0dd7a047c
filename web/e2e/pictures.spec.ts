import { fileURLToPath } from 'node:url'
import { advance, expect, expectLive, test } from './fixture.ts'

// Screenshots for the book, taken by `npm run pictures` from the simulated cluster; not a test. PICTURES_TO is another folder,
// and EVERY=1 takes every page in light, dark, on a phone, and with 1,000 racks, to look at them.

const FOLDER = process.env['PICTURES_TO'] ?? fileURLToPath(new URL('../../docs/pictures/', import.meta.url))
const EVERY = process.env['EVERY'] !== undefined

interface Picture {
  name: string
  path: string
  scheme?: 'light' | 'dark'
  width?: number
  height: number
  racks?: number
}
const BOOK: Picture[] = [
  { name: 'racks', path: 'racks', height: 770 },
  { name: 'many', path: 'racks', height: 760, racks: 1000 },
  { name: 'rack', path: 'racks/r12', height: 760 },
  { name: 'decisions', path: 'decisions/d-719-1', height: 900 },
  { name: 'hotspots', path: 'hotspots', scheme: 'dark', height: 1000 },
  { name: 'workloads', path: 'workloads', height: 480 },
  { name: 'worth', path: 'worth', height: 860 },
  { name: 'service', path: 'service', height: 900 },
  { name: 'lab', path: 'lab', height: 800 },
  { name: 'phone', path: 'racks', width: 390, height: 844, racks: 1000 },
]
const VARIANTS: [string, Partial<Picture>][] = [
  ['light', {}],
  ['dark', { scheme: 'dark' }],
  ['phone', { width: 390, height: 844 }],
  ['many', { racks: 1000 }],
  ['many-phone', { racks: 1000, width: 390, height: 844 }],
]
const PICTURES = EVERY
  ? VARIANTS.flatMap(([variant, changes]) =>
      BOOK.filter(({ name }) => name !== 'many' && name !== 'phone').map((one) => ({
        ...one,
        scheme: 'light' as const,
        ...changes,
        name: `${variant}-${one.name}`,
      })),
    )
  : BOOK

for (const { name, path, scheme = 'light', width = 1280, height, racks = 40 } of PICTURES)
  test(`picture of ${name}`, async ({ page, open }) => {
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
    const mock = await open(path, { demo: path === 'demo', racks, lab: path === 'lab' ? 8 : 0 })
    await expectLive(page)
    await expect(page.getByText(/^Loading/)).toHaveCount(0)
    if (path.startsWith('decisions')) {
      await page.getByLabel(/What if/).selectOption('uniform')
      await expect(page.getByText(/^uniform would/)).toBeVisible()
    }
    // Rates need two statuses at least one interval apart.
    await advance(mock, page, 1)
    await page.waitForTimeout(6000)
    // A lab makes views all the time.
    if (path === 'lab') await advance(mock, page, 1).then(() => page.waitForTimeout(2000))
    await page.screenshot({ path: `${FOLDER}/dashboard-${name}.png`, fullPage: EVERY })
  })
