import type { Page } from '@playwright/test'
import { lab } from '../mock/lab.ts'
import { rate as text } from '../src/logic/format.ts'
import { ratesBetween } from '../src/logic/lab.ts'
import { expectAccessible, BOTH_THEMES, expect, expectLive, advance, test } from './fixture.ts'

/** Layout shift entry of the browser. */
interface Shift {
  sources: { node: Element | null }[]
}

const PAGES: [string, string, string | RegExp][] = [
  ['demo', 'demo', 'The same work, placed two ways'],
  ['racks', 'racks', 'Racks'],
  ['a rack', 'racks/r12', 'r12'],
  ['decisions', 'decisions', 'Decisions'],
  ['a decision', 'decisions/d-720-0', 'Decisions'],
  ['hotspots', 'hotspots', 'Hotspots'],
  ['workloads', 'workloads', 'SLO workloads'],
  ['a search', 'decisions?rack=r3&since=2h', 'Decisions'],
  ['worth it', 'worth', 'Worth it'],
  ['a lab', 'lab', 'Lab'],
  ['the service', 'service', 'Service'],
]

/** Elements that overflow their box. With `tables`, wide tables are allowed: they scroll to the side. */
const overflows = (page: Page, tables: boolean) =>
  page.evaluate((tables) => {
    const wide = ({ scrollWidth, clientWidth }: Element) => clientWidth > 0 && scrollWidth > clientWidth + 1
    const allowed = (one: Element) =>
      one.closest('.hidden, details:not([open])') || (tables && one.closest('.scroll'))
    const elements = [...document.querySelectorAll<HTMLElement>('header, header *, main, main *')]
    return elements.filter((one) => wide(one) && !allowed(one)).map((one) => one.outerHTML.slice(0, 120))
  }, tables)

for (const [name, path, heading] of PAGES)
  test(`${name}: has no horizontal scroll and is accessible`, BOTH_THEMES, async ({ page, open }) => {
    const mock = await open(path, { demo: true, lab: 8 })
    await expectLive(page)
    await advance(mock, page, 2)
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(heading)
    await expect(page).toHaveTitle(/Leeward$/)
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    expect(over).toBeLessThanOrEqual(0)
    // Waits for the end of colour transitions.
    await page.waitForTimeout(600)
    await expectAccessible(page)
  })

for (const width of [320, 390, 768, 1024])
  test(`${width} pixels wide: no page overflows, and the connection state is visible`, async ({
    page,
    open,
  }) => {
    await page.setViewportSize({ width, height: 800 })
    const mock = await open('racks', { demo: true, lab: 8 })
    mock.stalled = 'the disk is full'
    await expectLive(page)
    for (const [, path, heading] of PAGES) {
      await page.evaluate((path) => (location.hash = `#/${path}`), path)
      await expect(page.getByRole('heading', { level: 1 })).toHaveText(heading)
      await expect(page.getByRole('banner').getByRole('status')).toBeInViewport()
      await expect(page.getByRole('banner').getByText('store unavailable')).toBeInViewport()
      await expect(page.getByText(/^Loading/)).toHaveCount(0)
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      expect(over, path).toBeLessThanOrEqual(0)
      expect(await overflows(page, width < 1024), path).toEqual([])
    }
  })

test('on a narrow screen the first column stays visible while its table scrolls', async ({ page, open }) => {
  await page.setViewportSize({ width: 390, height: 800 })
  await open('workloads')
  await expectLive(page)
  const table = page.getByRole('region', { name: 'Workloads' })
  await table.evaluate((one) => (one.scrollLeft = one.scrollWidth))
  expect(await table.evaluate((one) => one.scrollLeft)).toBeGreaterThan(300)
  const row = table.getByRole('row').nth(1)
  await expect(row.getByText('4 hops')).toBeInViewport({ ratio: 1 })
  await expect(row.getByText('mail-store')).toBeInViewport({ ratio: 1 })
  await page.evaluate(() => (location.hash = '#/hotspots'))
  const moves = page.getByRole('region', { name: 'Moves' })
  const stays = moves.getByRole('button', { name: / stays$/ }).first()
  await stays.focus()
  await expect(stays).toBeInViewport({ ratio: 1 })
  await expect(moves.getByRole('heading')).toBeInViewport({ ratio: 1 })
})

test('ticks cause no layout shift', async ({ page, open }) => {
  const mock = await open('racks')
  await expectLive(page)
  await page.waitForTimeout(500)
  await page.evaluate(() => {
    const shifts: string[] = ((window as unknown as { shifts: string[] }).shifts = [])
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as unknown as Shift[])
        // The text of a right-aligned number may shift when it becomes longer; elements may not.
        for (const { node } of entry.sources)
          if (node?.nodeType === Node.ELEMENT_NODE) shifts.push(node.outerHTML)
    }).observe({ type: 'layout-shift' })
  })
  await advance(mock, page, 10)
  await page.waitForTimeout(300)
  expect(await page.evaluate(() => (window as unknown as { shifts: string[] }).shifts)).toEqual([])
})

test('racks: hot and unknown links have marks and text', async ({ page, open }) => {
  const mock = await open('racks')
  await expectLive(page)
  const tiles = page.getByRole('grid', { name: 'Racks, Now' })
  await expect(tiles.getByRole('link')).toHaveCount(40)
  await expect(
    tiles.getByRole('link', { name: /^r7: uplink not known, last \d+ % at \d\d:\d\d; / }),
  ).toBeVisible()
  const racks = mock.world.all(mock.step)
  const hot = racks.filter(({ up, down }) => (up.utilization ?? 0) >= 0.75 || (down.utilization ?? 0) >= 0.75)
  expect(hot.length).toBeGreaterThan(0)
  await expect(tiles.getByRole('link', { name: /hot/ })).toHaveCount(hot.length)
  await expect(page.locator('dl').first()).toContainText(
    new RegExp(`Hot racks now ?${hot.length} ?of 38 with telemetry`),
  )
  await page.getByLabel('Order').selectOption('heat')
  const first = await tiles.getByRole('link').first().getAttribute('data-rack')
  const heat = (one: (typeof racks)[number]) => Math.max(one.up.utilization ?? -1, one.down.utilization ?? -1)
  expect(first).toBe(racks.reduce((a, b) => (heat(b) > heat(a) ? b : a)).rack)
})

test('racks: the slider selects a past time, the heading shows it, and a button returns to now', async ({
  page,
  open,
}) => {
  const mock = await open('racks')
  await expectLive(page)
  await expect(page.getByRole('heading', { name: 'Now' })).toBeVisible()
  const slider = page.getByLabel('Moment')
  await expect(slider).toBeEnabled()
  await slider.fill('40')
  const heading = page.getByRole('heading', { name: /^At \d\d:\d\d:\d\d, not now$/ })
  await expect(heading).toBeVisible()
  const title = await heading.textContent()
  const step = mock.world.step(`2026-03-23T${title?.slice(3, 11)}Z`)
  // A column is 30 s long; the mock returns the value of its first interval.
  const value = Math.round((mock.world.utilization(0, 0, step) ?? 0) * 100)
  await expect(page.locator('[data-rack=r0]')).toHaveAttribute('aria-label', new RegExp(`uplink ${value} %`))
  await advance(mock, page, 6)
  await expect(heading).toHaveText(title ?? '')
  await page.getByRole('button', { name: 'Back to now' }).click()
  await expect(page.getByRole('heading', { name: 'Now' })).toBeVisible()
})

test('racks: the pointer reads the map, and a click holds the time', async ({ page, open }) => {
  await open('racks')
  await expectLive(page)
  await expect(page.getByLabel('Moment')).toBeEnabled()
  const box = await page.locator('canvas').boundingBox()
  await page.mouse.move((box?.x ?? 0) + 300, (box?.y ?? 0) + 30)
  await expect(page.getByText(/^r\d+, \d\d:\d\d:\d\d: uplink/)).toBeVisible()
  await page.mouse.click((box?.x ?? 0) + 300, (box?.y ?? 0) + 30)
  await expect(page.getByRole('heading', { name: /not now/ })).toBeVisible()
})

test('a rack: hosts, tasks, replicas, devices and reservations, and links to decisions', async ({
  page,
  open,
}) => {
  await open('racks/r12')
  await expectLive(page)
  await expect(page.getByRole('region', { name: 'r12:uplink' })).toContainText('40\u00a0Gbps')
  await expect(page.getByRole('row', { name: /r12h3/ })).toBeVisible()
  for (const [tab, text] of [
    ['Tasks', 't12-0-0'],
    ['Devices', 'r12h0:nvme0'],
    ['Reservations', 'orders-db'],
  ] as const) {
    await page.getByRole('tab', { name: tab }).click()
    await expect(page.getByRole('tabpanel')).toContainText(text)
  }
  await page.getByRole('tab', { name: 'Devices' }).click()
  const device = (name: string) => page.getByRole('row', { name })
  await expect(device('r12h1:nvme0')).toContainText(/9\d\s%\s*hot/)
  await expect(device('r12h0:nvme1')).not.toContainText('hot')
  await expectAccessible(page)
  await page.getByRole('tab', { name: 'Hosts' }).click()
  await expect(page.getByRole('row', { name: /^r12h3 / })).toContainText('sends 10\u00a0Gbps of 25\u00a0Gbps')
  await page.getByRole('tab', { name: 'Replicas' }).click()
  await page.getByRole('tabpanel').getByRole('link').first().click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Decisions')
})

test('decisions: the list is live, filterable and pausable, and compares policies', async ({
  page,
  open,
}) => {
  const mock = await open('decisions')
  await expectLive(page)
  const list = page.getByRole('region', { name: 'List of decisions' })
  const before = await list.getByRole('link').first().getAttribute('href')
  await advance(mock, page, 1)
  await expect(list.getByRole('link').first()).not.toHaveAttribute('href', before ?? '')
  await page.getByRole('button', { name: 'Pause' }).click()
  const paused = await list.getByRole('link').first().getAttribute('href')
  await advance(mock, page, 2)
  await expect(page.getByRole('button', { name: /Resume \([1-9]\d* new\)/ })).toBeVisible()
  await expect(list.getByRole('link').first()).toHaveAttribute('href', paused ?? '')
  await page.getByText('replicas', { exact: true }).first().click()
  await expect(list.locator('.kind', { hasNotText: 'replicas' })).toHaveCount(0)
  await list.getByRole('link').nth(2).click()
  const decided = page.getByRole('region', { name: 'As decided', exact: true })
  await expect(decided.getByRole('row').nth(1)).toContainText('chosen')
  await expect(decided).toContainText('outranked')
  await expect(decided).toContainText('downlink')
  await page.getByLabel('What if another policy had decided?').selectOption('uniform')
  const other = page.getByRole('region', { name: 'What if: uniform', exact: true })
  await expect(other).toContainText('The policy did not use link loads.')
  await expect(other.getByRole('columnheader')).toHaveText(['Candidate', 'Verdict'])
  await expect(page.getByText(/^uniform would choose/)).toBeVisible()
  await expectAccessible(page)
})

test('hotspots: the table shows age, last hour and moves', async ({ page, open }) => {
  const mock = await open('hotspots')
  await expectLive(page)
  const hot = mock.world.hotspots(mock.step)
  const table = page.getByRole('region', { name: 'Hot links', exact: true })
  await expect(table.getByRole('row')).toHaveCount(hot.length + 1)
  const oldest = table.getByRole('row').nth(1)
  await expect(oldest).toContainText(hot[0]?.link ?? '')
  await expect(oldest.getByRole('img', { name: /^From \d+ % to \d+ %$/ })).toBeVisible()
  await expect(oldest).toContainText(/\d (advised|done|refused|expired)/)
  // Cooled links leave the table and new hot links appear, without a reload.
  const names = (step: number) => mock.world.hotspots(step).map(({ link }) => link)
  const now = names(mock.step).sort().join()
  let ticks = 0
  while (
    names(mock.step + ticks)
      .sort()
      .join() === now
  )
    ticks++
  await advance(mock, page, ticks)
  await expect(table.getByRole('row')).toHaveCount(names(mock.step).length + 1)
})

test('hotspots: links of hosts have their own table and do not count in the header', async ({
  page,
  open,
}) => {
  const mock = await open('hotspots')
  await expectLive(page)
  const shared = mock.world.hotspots(mock.step).length
  const badge = page.getByRole('navigation').getByTitle(/hot links?$/)
  await expect(badge).toHaveText(String(shared))
  const time = mock.world.time(mock.step)
  for (let at = 0; at < 60; at++)
    mock.publish('hotspot', { link: `r0h${at}:egress`, since: time, age_s: 0, utilization: 0.9, until: null })
  const own = page.getByRole('region', { name: 'Hot links of hosts' })
  await expect(own.getByRole('row')).toHaveCount(51)
  await expect(badge).toHaveText(String(shared))
  await expect(page.getByRole('region', { name: 'Hot links', exact: true }).getByRole('row')).toHaveCount(
    shared + 1,
  )
  await own.getByRole('button', { name: 'Show 10 more' }).press('Enter')
  await expect(own.getByRole('row')).toHaveCount(61)
  await expect(own.getByText('All 60 are shown.')).toBeFocused()
  await expectAccessible(page)
})

test('moves: one is answered as done, one as refused with a reason', async ({ page, open }) => {
  await open('hotspots')
  await expectLive(page)
  const moves = page.getByRole('region', { name: 'Moves' })
  const waiting = moves.getByRole('button', { name: 'was moved' })
  const before = await waiting.count()
  expect(before).toBeGreaterThan(1)
  const first = moves.getByRole('row').nth(1)
  const [one, two] = await Promise.all([0, 1].map((at) => moves.locator('tbody th').nth(at).textContent()))
  await first.getByRole('button', { name: `${one} was moved` }).click()
  await expect(moves.getByRole('row', { name: one ?? '' })).toContainText('done')
  await moves.getByRole('button', { name: `${two} stays` }).press('Enter')
  await expect(page.getByLabel('Reason')).toBeFocused()
  await expectAccessible(page)
  await page.keyboard.type('it holds a lock')
  await page.keyboard.press('Enter')
  await expect(moves.getByRole('row', { name: two ?? '' })).toContainText(/refused\s*it holds a lock/)
  await expect(waiting).toHaveCount(before - 2)
})

test('the demo page reports a service without a demo', async ({ page, open }) => {
  const mock = await open('racks')
  mock.missing.push('demo')
  await page.evaluate(() => (location.hash = '#/demo'))
  await expect(page.getByText('This service runs no demo')).toBeVisible()
})

test('workloads: a missed SLO is first and has a tag', async ({ page, open }) => {
  await open('workloads')
  await expectLive(page)
  const rows = page.getByRole('region', { name: 'Workloads' }).getByRole('row')
  await expect(rows.nth(1)).toContainText('mail-store')
  await expect(rows.nth(1)).toContainText('Missed')
  await expect(rows.nth(2)).toContainText('Not assured')
  await expect(page.getByText('1 missed')).toBeVisible()
})

test('demo: it is the first page and shows both arms', async ({ page, open }) => {
  const mock = await open('', { demo: true })
  await expectLive(page)
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('The same work, placed two ways')
  await expect(page.getByText(/times fewer hot racks under Leeward/)).toBeVisible()
  const demo = mock.world.demo(mock.step, mock.step)
  for (const arm of demo.arms)
    await expect(
      page.getByRole('region', { name: arm.name === 'leeward' ? 'Leeward' : 'Default' }),
    ).toContainText(`${arm.hot_racks} of 40 racks hot`)
})

test(
  'lab: the matrix follows the lab, and the keyboard leads through it',
  BOTH_THEMES,
  async ({ page, open }) => {
    const mock = await open('lab', { lab: 8 })
    await expectLive(page)
    const grid = page.getByRole('grid', { name: 'Queues of lab rotor' })
    await expect(grid.getByRole('gridcell')).toHaveCount(64)
    const shown = () => lab(8, 1, mock.step)
    const expectShown = async () => {
      const { circuits, queued_packets } = shown()
      await expect(grid.getByRole('gridcell', { name: /circuit up/ })).toHaveCount(circuits.length)
      const [from, to] = circuits[0] ?? [0, 1]
      await expect(
        grid.getByRole('gridcell', {
          name: `r${from} to r${to}: ${queued_packets[from * 8 + to]} of 128 packets`,
        }),
      ).toBeVisible()
    }
    await expectShown()
    const rates = page.getByRole('region', { name: 'Rates of racks of lab rotor' })
    await expect(rates.getByRole('row').nth(1)).toContainText('–')
    await advance(mock, page, 1)
    await expectShown()
    const [before, now] = [lab(8, 1, mock.step - 1), shown()]
    const rate = ratesBetween(before, now)?.[7]
    await expect(rates.getByRole('row').nth(8)).toHaveText(
      new RegExp(`r7\\s*${text(rate?.packet_bps)}\\s*${text(rate?.circuit_bps)}`),
    )
    // Only the last focused cell is in the tab order.
    await grid.getByRole('gridcell', { name: /^r0 to r1:/ }).focus()
    for (const key of ['ArrowDown', 'ArrowRight', 'End', 'ArrowDown']) await page.keyboard.press(key)
    await expect(grid.getByRole('gridcell', { name: /^r2 to r7:/ })).toBeFocused()
    expect(await grid.locator('[tabindex="0"]').count()).toBe(1)
    await page.keyboard.press('Control+Home')
    await expect(grid.getByRole('gridcell', { name: 'r0 to itself: no queue' })).toBeFocused()
    // A lab that makes no views says so and loses its colour, until it makes one.
    const section = page.getByRole('main').getByRole('region', { name: /^rotor/ })
    const filter = () => section.evaluate((one) => getComputedStyle(one).filter)
    await expect(page.getByText(/no new view for \d+/)).toBeVisible()
    expect(await filter()).toContain('grey')
    await advance(mock, page, 1)
    await expect(page.getByText(/no new view for \d+/)).toHaveCount(0)
    expect(await filter()).toBe('none')
  },
)

test('lab: 64 racks fit a phone and have no numbers in cells', BOTH_THEMES, async ({ page, open }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  const mock = await open('lab', { lab: 64 })
  await expectLive(page)
  await advance(mock, page, 1)
  const grid = page.getByRole('grid', { name: 'Queues of lab rotor' })
  await expect(grid.getByRole('gridcell')).toHaveCount(4096)
  await expect(grid).toHaveText(/^[\d\s]*$/)
  await expect(grid.getByRole('gridcell', { name: /^r63 to r62:/ })).toHaveText('')
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  expect(over).toBeLessThanOrEqual(0)
  expect(await overflows(page, true)).toEqual([])
  const sides = await grid.evaluate((one) => [
    one.getBoundingClientRect().right,
    one.querySelector('[data-pair="63"]')?.getBoundingClientRect().right ?? Infinity,
  ])
  expect(sides[1]).toBeLessThanOrEqual(sides[0] ?? 0)
})

test('labs are in the navigation only if there are some', async ({ page, open }) => {
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  const labs = () => asked.filter((path) => path === '/v1/labs').length
  await open('racks', { lab: 2 })
  const link = page.getByRole('navigation').getByRole('link', { name: 'Lab', exact: true })
  await expect(link).toBeVisible()
  await page.waitForTimeout(3000)
  expect(labs(), 'other pages ask seldom').toBe(1)
  await link.click()
  await expect.poll(labs).toBeGreaterThan(3)
  await open('racks')
  await expectLive(page)
  await page.waitForTimeout(500)
  await expect(link).toHaveCount(0)
  await page.evaluate(() => (location.hash = '#/lab'))
  await expect(page.getByText('No lab with circuits stands on the service’s machine.')).toBeVisible()
  await expectAccessible(page)
})

test('without a demo, racks are the first page', async ({ page, open }) => {
  await open('')
  await expectLive(page)
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Racks')
  await expect(page.getByRole('navigation').getByRole('link', { name: 'Demo' })).toHaveCount(0)
})

test('every page of an empty cluster shows the next step', async ({ page, open }) => {
  await open('racks', { empty: true })
  await expect(page.getByText('This cluster has no racks.')).toBeVisible()
  for (const [name, text] of [
    ['Hotspots', 'No link is seen, so hotspots are unknown.'],
    ['Decisions', 'No decision was made yet'],
    ['Workloads', 'No workload was admitted'],
  ] as const) {
    await page.getByRole('navigation').getByRole('link', { name }).click()
    await expect(page.getByText(text)).toBeVisible()
    await expectAccessible(page)
  }
})

test('missing resources and pages have a message with a link', async ({ page, open }) => {
  await open('racks/r99')
  await expect(page.getByText('Not found')).toBeVisible()
  await expect(page.getByRole('main').getByRole('link', { name: 'the racks' })).toBeVisible()
  await page.evaluate(() => (location.hash = '#/nowhere'))
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Page not found')
})

test('workloads: places without their promise and enforcers are shown, and a failure has a message', async ({
  page,
  open,
}) => {
  const mock = await open('workloads')
  await expectLive(page)
  const rows = page.getByRole('region', { name: 'Workloads' }).getByRole('row')
  const mail = rows.filter({ hasText: 'mail-store' })
  await expect(mail).toContainText(/Not enforced\s*2 of 3/)
  await expect(mail).toContainText('fast')
  await mail.getByText('1 open place').click()
  await expect(mail).toContainText('found it changed: rate 1 Mbit/s')
  await expect(page.getByText('1 not enforced')).toBeVisible()
  const enforcers = page.getByRole('region', { name: 'Enforcers' })
  await expect(enforcers.getByRole('row').nth(1)).toContainText(/net@.*live.*41 of 41/)
  mock.missing.push('enforcers')
  await page.reload()
  await expect(page.getByText('Not found')).toBeVisible()
  await expect(page.getByText('The page retries every 5 s.')).toBeVisible()
})
