import { fileURLToPath } from 'node:url'
import { expect, test } from '@playwright/test'
import { expectLive } from './fixture.ts'

// Screenshots for the book, taken by `npm run pictures`; not a test. LEEWARD is the address of a service, LEEWARD_DEMO of a
// demo that has run for a minute (`leeward serve --demo --speed 120 --interval 250ms`).

const SERVICE = process.env['LEEWARD'] ?? ''
const DEMO = process.env['LEEWARD_DEMO'] ?? ''
const FOLDER = process.env['PICTURES_TO'] ?? fileURLToPath(new URL('../../docs/pictures/', import.meta.url))
const PICTURES: [string, string, 'light' | 'dark', number][] = [
  ['racks', 'racks', 'light', 720],
  ['rack', 'racks/r8', 'light', 720],
  ['decisions', 'decisions', 'light', 720],
  ['hotspots', 'hotspots', 'dark', 860],
  ['workloads', 'workloads', 'light', 480],
  ['demo', 'demo', 'light', 720],
]

for (const [name, path, colorScheme, height] of PICTURES)
  test(`picture of ${name}`, async ({ page }) => {
    const service = name === 'demo' ? DEMO : SERVICE
    test.skip(!service, 'LEEWARD_DEMO is not set')
    await page.setViewportSize({ width: 1280, height })
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.goto(`${service}/#/${path}`)
    await expectLive(page)
    if (name === 'decisions') {
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.locator('.list a', { hasText: 'replicas' }).nth(2).click()
      await expect(page.getByRole('region', { name: /^As decided/ }).first()).toBeVisible()
      const other = page.getByLabel(/What if/)
      if (await other.isVisible()) {
        await other.selectOption('leeward')
        await expect(page.getByText(/^leeward would/)).toBeVisible()
      }
    }
    // Rates need two statuses at least one interval apart.
    await page.waitForTimeout(12_000)
    await page.screenshot({ path: `${FOLDER}/dashboard-${name}.png` })
  })
