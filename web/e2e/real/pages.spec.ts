import type { Decision } from '../../src/api/types'
import {
  expectAccessible,
  evenLoads,
  expect,
  feed,
  expectLive,
  expectReadable,
  type Service,
  test,
} from './fixture.ts'

/** Loads for examples/clusters/racks.yaml: one hot link and one link without a report. */
function loads(): Record<string, number> {
  const loads = evenLoads(6, 8, 4e9, 5e8)
  loads['r2:downlink'] = 17e9
  delete loads['r5:uplink']
  for (let host = 0; host < 8; host++) delete loads[`r5h${host}:egress`]
  return loads
}

const block = (service: Service) =>
  service.request<Decision>('POST', '/v1/place/replicas', { size: '256MiB', writer: 'r0h1' })

test('the overview leads to a rack, its placements, and the decision details', async ({
  page,
  start,
  visit,
}) => {
  const service = await start('racks')
  await feed(page, service, loads())
  const decision = await block(service)
  await service.request('POST', '/v1/place/tasks', {
    job: 'count',
    app: { tasks: [{ name: 'map', cpus: 2, memory: '4GiB', egress: { mean: '1Gbps' }, tolerant: true }] },
  })
  await visit(service)
  await expectLive(page)
  await expect(page).toHaveTitle('Racks · racks · Leeward')
  const tiles = page.getByRole('grid', { name: 'Racks, Now' })
  await expect(tiles.getByRole('link')).toHaveCount(6)
  await expect(tiles.getByRole('link', { name: 'r2: uplink 20 %; downlink 85 %, hot' })).toBeVisible()
  await expect(tiles.getByRole('link', { name: 'r5: uplink not known; downlink 20 %' })).toBeVisible()
  await expect(page.locator('dl').first()).toContainText(/Hot racks now ?1 ?of 6 with telemetry/)
  await expect(page.locator('dl').first()).toContainText(/Load samples received ?[1-9]/)
  await expect(page.getByText('The history was not read')).toHaveCount(0)
  await expectReadable(page)

  await tiles.getByRole('link', { name: /^r2/ }).click()
  const link = page.getByRole('region', { name: 'r2:downlink' })
  await expect(link).toContainText('20\u00a0Gbps')
  await expect(link).toContainText(/hot for/)

  const rack = decision.hosts[1]?.replace(/h\d+$/, '') ?? ''
  await page.evaluate((rack) => (location.hash = `#/racks/${rack}`), rack)
  await expect(page.getByRole('row', { name: new RegExp(`^${decision.hosts[1]} `) })).toContainText('up')
  await page.getByRole('tab', { name: 'Replicas' }).click()
  await expectReadable(page)
  await page.getByRole('tabpanel').getByRole('link', { name: decision.id }).first().click()

  const decided = page.getByRole('region', { name: 'As decided', exact: true })
  await expect(decided.getByRole('list', { name: 'Hosts' }).getByRole('listitem')).toHaveText(decision.hosts)
  await expect(decided).toContainText(`Bottleneck: ${decision.limit?.at}`)
  const reason = decision.why.find((one) => one.candidate === 'r2')
  expect(reason?.verdict).toBe('outranked')
  await expect(decided.getByRole('row', { name: /^r2 / })).toContainText(/outranked\s*3\sGbps\s*r2:downlink/)
  await expect(decided.getByRole('rowgroup').filter({ hasText: 'racks' }).first()).toContainText(rack)
  await expectReadable(page)
})

test('decisions and hotspots appear live, and cooled hotspots leave', async ({ page, start, visit }) => {
  const service = await start('racks')
  const carried = loads()
  await feed(page, service, carried)
  await visit(service, 'decisions')
  await expectLive(page)
  await expect(page.getByText('No decision was made yet')).toBeVisible()
  const decision = await block(service)
  const list = page.getByRole('region', { name: 'List of decisions' })
  await expect(list.getByRole('link').first()).toHaveAttribute('href', `#/decisions/${decision.id}`)
  const racks = new Set(decision.hosts.map((host) => host.replace(/h\d+$/, '')))
  await expect(list.getByRole('link').first().locator('.hosts')).toHaveText([...racks].join(', '))

  await page.getByRole('navigation').getByRole('link', { name: 'Hotspots' }).click()
  const table = page.getByRole('region', { name: 'Hot links', exact: true })
  await expect(table.getByRole('row', { name: /^r2:downlink \d+ s 85 %/ })).toBeVisible()
  carried['r4:uplink'] = 19e9
  await expect(table.getByRole('row')).toHaveCount(3)
  await expect(table.getByRole('row').nth(2)).toContainText(/r4:uplink/)
  await expectReadable(page)
  carried['r2:downlink'] = 1e9
  await expect(table.getByRole('row', { name: /r2:downlink/ })).toHaveCount(0)
  await expect(table.getByRole('row')).toHaveCount(2)
})

test('a restart of the service: the page shows it at once, marks old data, and loses nothing', async ({
  page,
  start,
  visit,
}) => {
  const service = await start('racks', ['--store', 'decisions.db'])
  await feed(page, service, loads())
  const decision = await block(service)
  await visit(service, 'racks')
  await expectLive(page)
  await service.stop()
  const state = page.getByRole('banner').getByRole('status')
  await expect(state).toHaveText(/not connected/)
  await expect(page.getByRole('heading', { name: /^Last seen/ })).toBeVisible()
  await service.resume()
  await expectLive(page)
  await expect(page.getByRole('link', { name: /^r2: .*85 %, hot/ })).toBeVisible()
  await page.getByRole('navigation').getByRole('link', { name: 'Decisions' }).click()
  await expect(page.locator(`[href="#/decisions/${decision.id}"]`)).toBeVisible()
})

test('a network without rack links has a message and shows its hosts', async ({ page, start, visit }) => {
  const service = await start('hose')
  await feed(page, service, { 'web-1:egress': 1e8, 'web-1:ingress': 9e8 })
  await visit(service, 'racks')
  await expect(page.getByText('have no links of their own')).toBeVisible()
  await expectAccessible(page)
  await page.getByRole('link', { name: 'web-1' }).click()
  await expect(page.getByRole('row', { name: /^web-1 up 33 % 90 %/ })).toBeVisible()
})
