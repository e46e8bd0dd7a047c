import { writeFileSync } from 'node:fs'
import { expect, expectLive, meters, test } from './fixture.ts'

const RACKS = 500
const HOSTS = 20
const SECONDS = 3

/** Loads of all links in a second. Some racks and some thousands of host links are hot, and they change over time. */
function loads(second: number): Record<string, number> {
  const result: Record<string, number> = {}
  const wave = (one: number, other: number) =>
    0.5 + 0.5 * Math.sin(one * 12.9898 + other * 78.233 + second / 20)
  for (let rack = 0; rack < RACKS; rack++) {
    result[`r${rack}:uplink`] = 34e9 * wave(rack, 1)
    result[`r${rack}:downlink`] = 32e9 * wave(rack, 2)
    for (let host = 0; host < HOSTS; host++) {
      result[`r${rack}h${host}:egress`] = 8e9 * wave(rack * 31 + host, 3) ** 2
      result[`r${rack}h${host}:ingress`] = 8e9 * wave(rack * 31 + host, 4) ** 2
    }
  }
  return result
}

test('10,000 hosts that report every second: pages stay small and responsive', async ({
  page,
  start,
  visit,
}, info) => {
  const file = info.outputPath('cluster.yaml')
  writeFileSync(
    file,
    `{name: large, racks: ${RACKS}, hosts_per_rack: ${HOSTS}, nic: 10Gbps, rack_link: 40Gbps, cpus: 16, memory: 64GiB}`,
  )
  const service = await start(file, ['--moves', 'utp', '--task-policy', 'borg'])
  let second = 0
  const report = () => service.report(loads(second++))
  await report()
  const tasks = [
    { name: 'crawl', count: 8, cpus: 1, memory: '1GiB', egress: { mean: '500Mbps' }, tolerant: true },
  ]
  for (let job = 0; job < 50; job++)
    await service.request('POST', '/v1/place/tasks', { job: `job-${job}`, app: { tasks } })
  const timer = setInterval(() => void report().catch(() => undefined), 1000)
  page.once('close', () => clearInterval(timer))

  const meter = await meters(page)
  for (const path of ['racks', 'hotspots']) {
    const began = Date.now()
    await visit(service, path)
    await expectLive(page)
    if (path === 'racks') await expect(page.locator('[data-rack]')).toHaveCount(RACKS + 24)
    if (path === 'hotspots')
      for (const name of ['Hot links', 'Hot links of hosts'])
        await expect(
          page.getByRole('region', { name, exact: true }).getByRole('button', { name: 'Show 50 more' }),
        ).toBeVisible()
    const shown = (Date.now() - began) / 1000
    await page.waitForTimeout(1000)
    const before = await meter.busy_ms()
    await page.waitForTimeout(SECONDS * 1000)
    const busy = ((await meter.busy_ms()) - before) / SECONDS
    const elements = await page.locator('*').count()
    const heap = await meter.heap_mib()
    console.log(
      `${path}: shown after ${shown.toFixed(1)} s; ${busy.toFixed(0)} ms of main thread per second, ${elements} elements, ${heap.toFixed(1)} MiB`,
    )
    expect(busy).toBeLessThan(250)
    expect(elements).toBeLessThan(5000)
    expect(heap).toBeLessThan(50)
  }
})
