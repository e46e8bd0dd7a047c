import type { Decision, Workload } from '../../src/api/types'
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

/** Admits a workload with an SLO of 60 ms from r0h1 to r14h2, which is in another pod. */
const promise = (service: Service, name: string) =>
  service.request<Decision>('POST', '/v1/workloads', {
    workload: {
      name,
      client: 'r0h1',
      server: 'r14h2:nvme',
      slo: { percentile: 99.9, latency: '60ms' },
      unloaded: '2ms',
      curves: {
        'network-in': [{ rate: '2MB/s', burst: '256kB' }],
        storage: [{ rate: '15%', burst: '12ms' }],
        'network-out': [{ rate: '8MB/s', burst: '512kB' }],
      },
    },
  })

test('a workload shows its SLO, bound and measured latency, and links to its decision', async ({
  page,
  start,
  visit,
}) => {
  const service = await start('pods')
  const seen = { workloads: [{ workload: 'orders-db', latency_s: 0.021 }] }
  await visit(service, 'workloads')
  await expect(page.getByText('No workload was admitted')).toBeVisible()
  const decision = await promise(service, 'orders-db')
  await promise(service, 'search-index')
  await feed(page, service, evenLoads(96, 16, 4e9, 1e9), seen)
  await expectLive(page)
  const orders = page.getByRole('row', { name: /^orders-db/ })
  const search = page.getByRole('row', { name: /^search-index/ })
  // Nothing applies the promise, on which the bound depends.
  await expect(orders).toContainText(/Not enforced.*60\sms.*99\.9\s%.*21\sms.*Decided\s*0 of 3/)
  const workload = await service.request<Workload>('GET', '/v1/workloads/orders-db')
  const bound_s = workload.bound_s ?? NaN
  expect(bound_s).toBeLessThan(0.06)
  const cells = orders.getByRole('cell')
  await expect(cells.nth(2)).toHaveText(`${Number((bound_s * 1000).toPrecision(3))}\u00a0ms`)
  await expect(cells.nth(4)).toHaveText(`${Math.round((1 - bound_s / 0.06) * 100)}\u00a0%`)
  // The other workload has no measured latency.
  await expect(search.getByRole('cell').nth(3)).toHaveText('–')
  await orders.getByText(`${workload.path.length} hops`).click()
  await expect(orders).toContainText(workload.path.join(' → '))
  await expectReadable(page)

  // A workload that misses its SLO is first and has a tag.
  seen.workloads.push({ workload: 'search-index', latency_s: 0.09 })
  await expect(page.getByText('1 missed')).toBeVisible()
  await expect(page.getByRole('row').nth(1)).toContainText(/search-index.*Missed.*90\sms/)
  await orders.getByRole('link', { name: 'decision' }).click()
  await expect(page.getByRole('heading', { name: `Decision ${decision.id} workload` })).toBeVisible()
  await expect(page.getByRole('region', { name: 'As decided', exact: true })).toContainText(
    `Bottleneck: ${decision.limit?.at}`,
  )
})

test('a rack shows its devices, reservations and tasks', async ({ page, start, visit }) => {
  const service = await start('pods')
  await promise(service, 'orders-db')
  const device = { device: 'r14h2:nvme', busy: 0.93, read_bps: 12e9, write_bps: 2e9, queue: 14.5 }
  await feed(page, service, evenLoads(96, 16, 4e9, 1e9), { devices: [device] })
  const tasks = ['read', 'sort'].map((name) => ({
    name,
    cpus: 2,
    memory: '4GiB',
    egress: { mean: '1Gbps' },
    tolerant: name === 'sort',
  }))
  const decision = await service.request<Decision>('POST', '/v1/place/tasks', {
    job: 'count',
    app: { tasks },
  })

  await visit(service, 'racks/r14')
  await expectLive(page)
  await expect(page.getByText('in p1, 16 hosts')).toBeVisible()
  await page.getByRole('tab', { name: 'Devices 16' }).click()
  const deviceRow = page.getByRole('row', { name: /^r14h2:nvme/ })
  await expect(deviceRow).toContainText(/93\s%\s*hot\s*14\.5\s*12\sGbps\s*2\sGbps\s*17\s%\s*4\sTB/)
  await expect(page.getByRole('row', { name: /^r14h3:nvme/ })).toContainText('not seen')
  await expectAccessible(page)
  await page.getByRole('tab', { name: 'Reservations 4' }).click()
  const reservation = page.getByRole('row', { name: /^orders-db r14:uplink 0 70\.4\sMbps$/ })
  await expect(reservation).toBeVisible()
  await expect(page.getByRole('region', { name: 'r14:uplink' })).toContainText(/Reserved\s*70\.4\sMbps/)

  const [host, other] = decision.hosts as [string, string]
  await page.evaluate((rack) => (location.hash = `#/racks/${rack}`), host.replace(/h\d+$/, ''))
  await page.getByRole('tab', { name: 'Tasks' }).click()
  await expect(
    page.getByRole('row', { name: `read count ${host} no: sensitive 1\u00a0Gbps 0\u00a0bps` }),
  ).toBeVisible()
  await page.getByRole('link', { name: 'read' }).click()
  const hosts = page.getByRole('list', { name: 'Hosts' }).getByRole('listitem')
  await expect(hosts).toHaveText([`read ${host}`, `sort ${other}`])
})
