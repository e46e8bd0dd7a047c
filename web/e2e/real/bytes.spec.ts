import { writeFileSync } from 'node:fs'
import { expect, expectLive, test } from './fixture.ts'

const RACKS = 1000
const SECONDS = 20
/** Greatest number of bytes per second that a tab receives. */
const LIMIT = 20_000

/** Loads of all links of racks in a second; every one changes by some per cent. */
function loads(second: number): Record<string, number> {
  const result: Record<string, number> = {}
  const wave = (one: number, other: number) =>
    0.5 + 0.5 * Math.sin(one * 12.9898 + other * 78.233 + second / 20) + 0.02 * Math.random()
  for (let rack = 0; rack < RACKS; rack++) {
    result[`r${rack}:uplink`] = 34e9 * wave(rack, 1)
    result[`r${rack}:downlink`] = 32e9 * wave(rack, 2)
  }
  return result
}

test('1,000 racks whose loads change every second: a tab receives at most 20 kB/s', async ({
  page,
  start,
  visit,
}, info) => {
  const file = info.outputPath('cluster.yaml')
  writeFileSync(file, `{name: wide, racks: ${RACKS}, hosts_per_rack: 2, nic: 25Gbps, rack_link: 40Gbps}`)
  const service = await start(file)
  let second = 0
  const report = () => service.report(loads(second++))
  for (let at = 0; at < 3; at++) await report()
  const timer = setInterval(() => void report().catch(() => undefined), 1000)
  page.once('close', () => clearInterval(timer))
  await visit(service, 'racks')
  await expectLive(page)
  await expect(page.locator('[data-rack]')).toHaveCount(RACKS + 24)
  const first = page.getByRole('grid', { name: 'Hottest racks, Now' }).getByRole('link').first()
  const before = { bytes: service.sent, label: await first.getAttribute('aria-label') }
  await page.waitForTimeout(SECONDS * 1000)
  const each = (service.sent - before.bytes) / SECONDS
  console.log(`1,000 racks: ${(each / 1000).toFixed(1)} kB/s`)
  expect(each).toBeLessThan(LIMIT)
  // The numbers moved meanwhile.
  expect(await first.getAttribute('aria-label')).not.toBe(before.label)
  await expectLive(page)
})
