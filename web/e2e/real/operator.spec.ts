import type { Decision, HotLink, ModesInForce, Page, Summary } from '../../src/api/types'
import { evenLoads, expect, expectLive, expectReadable, feed, test } from './fixture.ts'

test('a hot rack of others: the page says so, and names the reason without a move', async ({
  page,
  start,
  visit,
}) => {
  const service = await start('racks', ['--moves', 'utp', '--task-policy', 'borg'])
  const carried = evenLoads(6, 8, 4e9, 5e8)
  carried['r2:uplink'] = 19e9
  await feed(page, service, carried)
  await visit(service, 'hotspots')
  await expectLive(page)
  const row = page
    .getByRole('region', { name: 'Hot links', exact: true })
    .getByRole('row', { name: /^r2:uplink / })
  await expect(row).toContainText('no work of Leeward')
  await expect(row).toContainText('100\u00a0%')
  await expect(row).toContainText('none: placed by others')
  const { items } = await service.request<Page<HotLink>>('GET', '/v1/hotspots')
  expect(items[0]).toMatchObject({ link: 'r2:uplink', heaviest: [], no_move: 'others' })
  await expect(page.locator('dl.answers')).toContainText('The load is mostly not from tasks of Leeward.')
  await expectReadable(page)
  await row.getByRole('link').first().click()
  await expect(
    page.getByText(/Most of the load here is not from Leeward’s tasks: 100\s% of its uplink/),
  ).toBeVisible()
})

test('a search reaches the service, and its address shows the same decisions again', async ({
  page,
  start,
  visit,
}) => {
  const service = await start('racks', ['--store', 'decisions.db'])
  await feed(page, service, evenLoads(6, 8, 4e9, 5e8))
  const place = (body: object) =>
    service.request<Decision>('POST', '/v1/place/replicas', { size: '256MiB', writer: 'r0h1', ...body })
  const wanted = await place({ ref: 'blk_1073741825' })
  const other = await place({ client: 'hdfs-1', sequence: 1 })
  await visit(service, 'decisions')
  await expectLive(page)
  const list = page.getByRole('region', { name: 'List of decisions' })
  await expect(list.getByRole('listitem')).toHaveCount(2)
  const box = page.getByRole('searchbox', { name: 'Search' })
  const results = async (text: string, decisions: Decision[]) => {
    await box.fill(text)
    await page.keyboard.press('Enter')
    await expect(list.getByRole('listitem')).toHaveCount(decisions.length)
    for (const { id } of decisions) await expect(list.locator(`a[href^="#/decisions/${id}?"]`)).toBeVisible()
  }
  await results('blk_1073741825', [wanted])
  await results('client:hdfs-1 since:1h', [other])
  await results('rack:r0', [other, wanted])
  await results('policy:leeward-never', [])
  await results('client:hdfs-1', [other])
  await page.reload()
  await expectLive(page)
  await expect(list.getByRole('listitem')).toHaveCount(1)
  await expect(list.getByRole('link').first()).toContainText('hdfs-1')
  // A time that the service does not understand is its message, not an empty list.
  await box.fill('since:yesterday')
  await page.keyboard.press('Enter')
  await expect(list.getByText(/since/).first()).toBeVisible()
  await expectReadable(page)
})

test('the service page shows agents and modes, and turns Leeward off', async ({ page, start, visit }) => {
  const service = await start('racks', ['--store', 'decisions.db'])
  await feed(page, service, evenLoads(6, 8, 4e9, 5e8))
  await service.request('POST', '/v1/place/replicas', { size: '256MiB', writer: 'r0h1' })
  await visit(service, 'service')
  await expectLive(page)
  await expect(page.getByRole('heading', { name: /^Agents 48 report, 0 silent, 0 absent$/ })).toBeVisible()
  await expect(page.locator('dl').first()).toContainText(/Role ?leader/)
  const modes = page.getByRole('region', { name: 'Modes by kind' })
  await expect(modes.getByRole('row', { name: /^replicas on on on/ })).toBeVisible()
  await expect(page.getByRole('region', { name: 'Comparisons by kind' }).getByRole('row')).toHaveCount(2)
  await page.getByLabel('Reason').fill('an incident')
  await page.getByRole('button', { name: 'Turn off …' }).click()
  await page.getByRole('button', { name: 'Change to off' }).click()
  await expect(modes.getByRole('row', { name: /^replicas off off on/ })).toBeVisible()
  const after = await service.request<ModesInForce>('GET', '/v1/modes')
  expect([after.in_force.replicas, after.reason]).toEqual(['off', 'an incident'])
  const decision = await service.request<Decision>('POST', '/v1/place/replicas', {
    size: '256MiB',
    writer: 'r0h1',
  })
  expect(decision.by_default).toBe(true)
  await page.goto(page.url().replace(/#.*/, `#/decisions/${decision.id}`))
  await expect(page.getByText(/Mode: off, decided by\s+the default policy/)).toBeVisible()
  await expectReadable(page)
})

test('worth it: the summary of the service is shown', async ({ page, start, visit }) => {
  const service = await start('racks', ['--store', 'decisions.db', '--mode', 'shadow'])
  const carried = evenLoads(6, 8, 4e9, 5e8)
  carried['r2:downlink'] = 19e9
  await feed(page, service, carried)
  for (let at = 0; at < 20; at++)
    await service.request('POST', '/v1/place/replicas', { size: '1GiB', writer: `r${at % 6}h1` })
  // The service sums up every ten seconds.
  const decided = async () => (await service.request<Summary>('GET', '/v1/summary')).decisions[0]?.decided
  await expect.poll(decided).toBe(20)
  await visit(service, 'worth')
  await expectLive(page)
  await expect(
    page.getByText(/^(With Leeward’s choices|No link was or would have been hot|No decision was compared)/),
  ).toBeVisible()
  const table = page.getByRole('region', { name: 'Decisions by kind' })
  await expect(table.getByRole('row', { name: /^replicas 20 20 / })).toBeVisible()
  await expectReadable(page)
})
