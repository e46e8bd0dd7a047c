import { fileURLToPath } from 'node:url'
import { expect, test } from '@playwright/test'
import { live } from './fixture.ts'

// The pictures of the book, of the service that LEEWARD names and of the demo that LEEWARD_DEMO names, which ran for a minute
// (`leeward serve --demo --speed 120 --interval 250ms`). They are made anew by `npm run pictures`, and are no test.

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
    test.skip(!service, 'LEEWARD_DEMO names no service')
    await page.setViewportSize({ width: 1280, height })
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.goto(`${service}/#/${path}`)
    await live(page)
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
    // Rates are known of two statuses that are an interval apart.
    await page.waitForTimeout(12_000)
    await page.screenshot({ path: `${FOLDER}/dashboard-${name}.png` })
  })
