import type { Demo } from '../../src/api/types'
import { expectAccessible, expect, expectLive, test } from './fixture.ts'

test('a demo is the first page of its service, and shows both arms live', async ({ page, start, visit }) => {
  const service = await start(null, ['--demo', '--speed', '300', '--interval', '100ms'])
  await visit(service)
  await expectLive(page)
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('The same work, placed two ways')
  await expect(page).toHaveTitle('Demo · demo · Leeward')
  const verdict = page.getByText(/over the last [\d.]+\s(min|h)\.$/)
  await expect(verdict).toBeVisible()
  const demo = await service.request<Demo>('GET', '/v1/demo')
  expect(demo.arms.map(({ name }) => name).sort()).toEqual(['default', 'leeward'])
  for (const { name, policy } of demo.arms) {
    const arm = page.getByRole('region', { name: name === 'leeward' ? 'Leeward' : 'Default' })
    await expect(arm).toContainText(`policy ${policy}`)
    await expect(arm).toContainText(/\d+ of 48 racks hot/)
    await expect(arm.locator('[data-rack]')).toHaveCount(48)
    await expect(arm.locator('.unknown')).toHaveCount(0)
  }
  // Some racks are hot under the default policy; the chart has the current share.
  await expect(page.getByRole('region', { name: 'Default' }).locator('.half.hot').first()).toBeVisible()
  await expect(page.getByRole('img', { name: /^Share of hot racks over time: Default now/ })).toBeVisible()
  const before = (await verdict.textContent()) ?? ''
  await expect(verdict).not.toHaveText(before)
  await expectAccessible(page)
  await page.getByRole('navigation').getByRole('link', { name: 'Racks' }).click()
  await expect(page.getByRole('grid', { name: 'Racks, Now' }).getByRole('link')).toHaveCount(48)
})
