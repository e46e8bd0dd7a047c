import type { Page } from '@playwright/test'
import { expect, expectLive, meters, test } from './fixture.ts'

const TICKS = 10
/** Rounds of ticks. The fastest counts: other load on the machine only adds. */
const ROUNDS = 3

/** Main thread time of a fixed piece of work, in ms: the unit of limits, so that they hold on slow machines too. */
async function unitOfWork(page: Page, busy: () => Promise<number>): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const before = await busy()
    await page.evaluate(() => {
      const list = document.createElement('ul')
      for (let at = 0; at < 4000; at++) {
        const item = document.createElement('li')
        item.textContent = `item ${at}`
        list.append(item)
      }
      document.body.append(list)
      list.getBoundingClientRect()
      list.remove()
    })
    times.push((await busy()) - before)
  }
  return Math.min(...times)
}

for (const racks of [10, 1000])
  test(`${racks} racks: a tick takes little time, and the hottest racks fit a laptop screen`, async ({
    page,
    open,
  }) => {
    const mock = await open('racks', { racks })
    await expectLive(page)
    // Many racks are in groups, and the hottest are shown once more.
    await expect(page.locator('[data-rack]')).toHaveCount(racks === 10 ? racks : racks + 24)
    await expect(page.getByLabel('Moment')).toBeEnabled()
    const grid = racks === 10 ? 'Racks, Now' : 'Hottest racks, Now'
    const box = await page.getByRole('grid', { name: grid }).boundingBox()
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThan(720)
    await page.waitForTimeout(500)
    await page.evaluate(() => {
      const ticks: number[] = ((window as unknown as { ticks: number[] }).ticks = [])
      new PerformanceObserver((list) => {
        for (const { name, duration } of list.getEntries()) if (name === 'tick') ticks.push(duration)
      }).observe({ type: 'measure' })
    })
    const { busy_ms: busy } = await meters(page)
    const unit = await unitOfWork(page, busy)
    const tickTimes = () => page.evaluate(() => (window as unknown as { ticks: number[] }).ticks)
    const rounds: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const before = await busy()
      for (let at = 0; at < TICKS; at++) {
        const seen = (await tickTimes()).length
        mock.tick()
        await expect.poll(async () => (await tickTimes()).length, { intervals: [50] }).toBe(seen + 1)
      }
      rounds.push(((await busy()) - before) / TICKS)
    }
    const each = Math.min(...rounds)
    const ticks = [...(await tickTimes())].sort((a, b) => a - b)
    const middle = ticks[Math.floor(ticks.length / 2)] ?? NaN
    console.log(
      `${racks} racks: ${each.toFixed(1)} ms of main thread per tick, ${(each / unit).toFixed(2)} units of ` +
        `${unit.toFixed(1)} ms; median time to render ${middle.toFixed(1)} ms`,
    )
    expect(each / unit).toBeLessThan(racks === 10 ? 1 : 2.5)
  })

test('two thousand decisions in a second leave the page responsive', async ({ page, open }) => {
  const mock = await open('decisions')
  await expectLive(page)
  const template = mock.world.decide(721, 0, 'replicas', 'leeward')
  const { busy_ms: busy } = await meters(page)
  const before = await busy()
  for (let at = 0; at < 2000; at++) {
    mock.publish('decision', {
      ...template,
      id: `flood-${at}`,
      time: new Date(Date.parse(template.time) + at).toISOString(),
    })
    if (at % 100 === 99) await page.waitForTimeout(50)
  }
  const list = page.getByRole('region', { name: 'List of decisions' })
  await expect(list.getByRole('link').first()).toHaveAttribute('href', '#/decisions/flood-1999')
  await expect(list.getByRole('link')).toHaveCount(100)
  const spent = (await busy()) - before
  console.log(`2000 decisions: ${spent.toFixed(0)} ms of main thread`)
  expect(spent).toBeLessThan(1000)
  await page.getByRole('navigation').getByRole('link', { name: 'Racks' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Racks')
})
