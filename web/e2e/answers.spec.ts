import { BOTH_THEMES, advance, expect, expectAccessible, expectLive, test } from './fixture.ts'

test('hotspots: four answers, the heaviest tasks, and the reason without a move', async ({ page, open }) => {
  const mock = await open('hotspots')
  await expectLive(page)
  const hot = mock.world.hotspots(mock.step)
  const answers = page.locator('dl.answers')
  await expect(answers).toContainText(`${hot.length} links are hot, ${hot[0]?.link} the longest`)
  await expect(answers).toContainText(/Why\s*Task \S+ on r\d+h\d sends \d/)
  await expect(answers).toContainText(/\d moves? in the last hour: /)
  await expect(answers).toContainText(/Whether it helped\s*(The load|No task)/)
  const table = page.getByRole('region', { name: 'Hot links', exact: true })
  const row = (link: string) => table.getByRole('row', { name: new RegExp(`^${link} `) })
  const own = hot.find((one) => one.heaviest.length === 3)
  const [heaviest] = own?.heaviest ?? []
  await expect(row(own?.link ?? '').getByRole('listitem')).toHaveCount(3)
  await expect(
    row(own?.link ?? '').getByRole('link', {
      name: `${heaviest?.job}/${heaviest?.task} on ${heaviest?.host}`,
    }),
  ).toBeVisible()
  const foreign = hot.find((one) => one.no_move === 'others')
  await expect(row(foreign?.link ?? '')).toContainText('no work of Leeward')
  await expect(row(foreign?.link ?? '')).toContainText('100\u00a0%')
  await expect(row(foreign?.link ?? '')).toContainText('placed by others')
  const moves = page.getByRole('region', { name: 'Moves' })
  await expect(moves.getByRole('columnheader', { name: 'Before → after' })).toBeVisible()
  await expect(moves.getByRole('row').nth(1)).toContainText(/\d+\s% → –/)
  await expect(moves.getByRole('heading')).toContainText(/moves? in the last hour/)
})

test('hotspots: “no link is seen” is not “no link is hot”', async ({ page, open }) => {
  const mock = await open('hotspots')
  await expectLive(page)
  mock.world.coolFrom = mock.step + 1
  await advance(mock, page, 1)
  await expect(
    page.getByText('No link of a rack or pod is hot').or(page.getByText(/^No link is hot/)),
  ).toBeVisible()
  await expect(page.getByText(/the \d+ of 80 links of racks that are seen are below 75\s%/)).toBeVisible()
  await expect(page.getByText('The others are not seen, so they may be hot.')).toBeVisible()
  mock.world.mutedFrom = mock.step + 1
  await advance(mock, page, 1)
  await expect(page.getByText('No link is seen, so hotspots are unknown.')).toBeVisible()
  await expect(page.getByText(/No link .*is hot/)).toHaveCount(0)
})

test('racks: a link that is no longer seen keeps its last value, marked as such', async ({ page, open }) => {
  const mock = await open('racks')
  await expectLive(page)
  const before = Math.round((mock.world.utilization(3, 0, mock.step) ?? 0) * 100)
  mock.world.mutedFrom = mock.step + 1
  await advance(mock, page, 1)
  const tile = page.locator('[data-rack=r3]').first()
  await expect(tile).toHaveAttribute(
    'aria-label',
    new RegExp(`^r3: uplink not known, last ${before} % at 11:00;`),
  )
  await expect(tile).toContainText(`(${before})`)
  await expect(page.locator('dl').first()).toContainText(/Hot racks now ?– ?no rack has telemetry/)
  await expect(page.locator('dl').first()).toContainText(
    /Share of link time hot ?\d+\.\d\s% ?of \d+\s(min|s) with telemetry/,
  )
  await page.evaluate(() => (location.hash = '#/racks/r3'))
  await expect(page.getByRole('region', { name: 'r3:uplink' })).toContainText(/last \d+\s% at \d\d:\d\d/)
})

test('a rack says that its load is not Leeward’s, and lists its heaviest tasks first', async ({
  page,
  open,
}) => {
  await open('racks/r12')
  await expectLive(page)
  await expect(
    page.getByText(/Most of the load here is not from Leeward’s tasks: \d+\s% of its uplink/),
  ).toBeVisible()
  await page.getByRole('tab', { name: 'Tasks' }).click()
  const rates = await page
    .getByRole('tabpanel')
    .locator('tbody tr')
    .evaluateAll((rows) =>
      rows.map((row) =>
        Math.max(
          ...[...row.querySelectorAll('.number')].map(
            (cell) => parseFloat(cell.textContent ?? '') * (cell.textContent?.includes('Gbps') ? 1000 : 1),
          ),
        ),
      ),
    )
  expect(rates.length).toBeGreaterThan(5)
  expect(rates).toEqual([...rates].sort((a, b) => b - a))
})

test('decisions: a search stays in the address, over a reload and in the links of its results', async ({
  page,
  open,
}) => {
  const mock = await open('decisions')
  await expectLive(page)
  const rack = mock.world.decisions(mock.step)[0]?.hosts[0]?.replace(/h\d+$/, '') ?? ''
  const list = page.getByRole('region', { name: 'List of decisions' })
  const box = page.getByRole('searchbox', { name: 'Search' })
  await box.fill(`rack:${rack} since:1h`)
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(new RegExp(`#/decisions\\?rack=${rack}&since=1h$`))
  const found = async () => (await list.getByRole('listitem').allTextContents()).length
  await expect.poll(found).toBeGreaterThan(0)
  for (const text of await list.locator('.hosts').allTextContents()) expect(text.split(', ')).toContain(rack)
  await expect(page.getByRole('button', { name: 'Pause' })).toBeDisabled()
  await page.reload()
  await expectLive(page)
  await expect(box).toHaveValue(`rack:${rack} since:1h`)
  await expect.poll(found).toBeGreaterThan(0)
  await list.getByRole('link').first().click()
  await expect(page).toHaveURL(new RegExp(`#/decisions/d-\\d+-\\d\\?rack=${rack}&since=1h$`))
  await expect(box).toHaveValue(`rack:${rack} since:1h`)
  // The heading is the permanent link, without the search.
  await expect(page.getByRole('heading', { level: 2 }).getByRole('link')).toHaveAttribute(
    'href',
    /^#\/decisions\/d-\d+-\d$/,
  )
  await page.getByRole('button', { name: 'Clear' }).click()
  await expect(page).toHaveURL(/#\/decisions\/d-\d+-\d$/)
  await box.fill('blk_0')
  await page.keyboard.press('Enter')
  await expect(page.getByText('No stored decision matches the search.')).toBeVisible()
  await expectAccessible(page)
  // More results follow on demand.
  for (let step = 0; step < 60; step++) mock.tick()
  await box.fill('policy:sinbad')
  await page.keyboard.press('Enter')
  await expect(list.getByRole('listitem')).toHaveCount(100)
  await list.getByRole('button', { name: 'Show more' }).click()
  await expect.poll(found).toBeGreaterThan(100)
})

test('decisions: a line has work, client, size, racks and bottleneck', async ({ page, open }) => {
  const mock = await open('decisions')
  await expectLive(page)
  const decision = mock.world.decide(
    mock.step,
    0,
    mock.world.decisions(mock.step)[0]?.kind ?? '',
    mock.world.decisions(mock.step)[0]?.policy ?? '',
  )
  const line = page.locator(`[href="#/decisions/${decision.id}"]`)
  for (const host of decision.hosts)
    await expect(line.locator('.hosts')).toContainText(host.replace(/h\d+$/, ''))
  await expect(line).toContainText(decision.client ?? '')
  await expect(line).toContainText(decision.limit?.at ?? '')
})

test('a what-if shows both choices on the same links', async ({ page, open }) => {
  const mock = await open('decisions')
  await expectLive(page)
  const steps = Array.from({ length: 20 }, (_, at) => mock.step - at)
  const decision = steps.flatMap((step) => mock.world.decisions(step)).find(({ kind }) => kind === 'replicas')
  await page.evaluate((id) => (location.hash = `#/decisions/${id}`), decision?.id ?? '')
  await expect(page.getByText(/Mode: on, decided by\s+Leeward’s policy/)).toBeVisible()
  const beside = page.getByRole('region', { name: /^Beside it: / })
  await expect(beside.getByRole('row')).toHaveCount(3)
  await page.getByLabel('What if another policy had decided?').selectOption('uniform')
  const both = page.getByRole('region', {
    name: 'Both on the links of now, without the decision’s own load',
    exact: true,
  })
  await expect(both.getByRole('row')).toHaveCount(3)
  for (const [at, name] of [
    [1, 'sinbad, decided'],
    [2, 'uniform, what if'],
  ] as const) {
    await expect(both.getByRole('row').nth(at)).toContainText(name)
    await expect(both.getByRole('row').nth(at)).toContainText(/r\d+:(up|down)link\s*\d+\s%/)
  }
})

test(
  '1,000 racks: the hottest with names and numbers, pods that open, and a map that says how to see the rest',
  BOTH_THEMES,
  async ({ page, open }) => {
    await open('racks', { racks: 1000 })
    await expectLive(page)
    const hottest = page.getByRole('grid', { name: 'Hottest racks, Now' })
    await expect(hottest.getByRole('link')).toHaveCount(24)
    await expect(hottest.getByRole('link').first()).toBeInViewport({ ratio: 1 })
    await expect(hottest.getByRole('link').first()).toContainText(/^r\d+/)
    await expect(hottest.getByRole('link').first()).toContainText(/\d\d/)
    await expect(page.getByText(/^Racks 1 to \d+ of 1,000\. Scroll the map for the others\.$/)).toBeVisible()
    const map = page.getByRole('grid', { name: 'Utilization of racks over time' })
    await map.evaluate((one) => (one.scrollTop = 1400))
    await expect(page.getByText(/^Racks 101 to \d+ of 1,000/)).toBeVisible()
    await expectAccessible(page)
    await page.getByRole('link', { name: 'p3', exact: true }).press('Enter')
    await expect(page).toHaveURL(/#\/racks\?group=p3$/)
    const racks = page.getByRole('grid', { name: 'Racks, Now' })
    await expect(racks.getByRole('link')).toHaveCount(50)
    await expect(racks.getByRole('link').first()).toContainText('r150')
    await expect(racks.getByRole('link').first()).toContainText(/\d\d/)
    await page.getByRole('link', { name: 'All racks' }).click()
    await expect(hottest).toBeVisible()
  },
)

test('a phone begins with the hottest ten', async ({ page, open }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  await open('racks', { racks: 1000 })
  await expectLive(page)
  const hottest = page.getByRole('grid', { name: 'Hottest racks, Now' }).getByRole('link')
  await expect(hottest).toHaveCount(10)
  await expect(hottest.last()).toBeInViewport({ ratio: 1 })
  await expect(hottest.last()).toContainText(/\d\d/)
})

test(
  'the service: silent agents by name, modes with their author, and a switch with confirmation',
  BOTH_THEMES,
  async ({ page, open }) => {
    const mock = await open('service')
    await expectLive(page)
    const stats = page.locator('dl').first()
    await expect(stats).toContainText(/Role ?leader/)
    await expect(stats).toContainText(/Connections ?331 ?of 576/)
    const { silent } = mock.world.agents(mock.step)
    expect(silent).toHaveLength(16)
    for (const host of silent)
      await expect(page.getByRole('listitem').filter({ hasText: host })).toBeVisible()
    await expect(
      page.getByRole('heading', {
        name: /^Modes Set by ada, 2026-03-16 08:12: “few were worse in a week of canaries”\.$/,
      }),
    ).toBeVisible()
    await expect(page.getByText('3 links with telemetry carry less')).toBeVisible()
    const modes = page.getByRole('region', { name: 'Modes by kind' })
    const comparisons = page.getByRole('region', { name: 'Comparisons by kind' })
    await expect(comparisons.getByRole('row', { name: /^replicas [1-9]\d* [1-9]\d* [1-9]/ })).toBeVisible()
    await expect(comparisons.getByRole('row', { name: /^volumes 0 0 0 [1-9]\d* 0/ })).toBeVisible()
    await expect(modes.getByRole('row', { name: /^replicas on on shadow sinbad/ })).toBeVisible()
    await page.getByLabel('Reason').fill('an incident')
    await page.getByRole('button', { name: 'Turn off …' }).click()
    const dialog = page.getByRole('dialog', { name: 'Change all kinds of decisions to off?' })
    await expectAccessible(page)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect(mock.modes.value.by).toBe('ada')
    await page.getByRole('button', { name: 'Turn off …' }).click()
    await dialog.getByRole('button', { name: 'Change to off' }).click()
    await expect(dialog).toBeHidden()
    await expect(
      page.getByRole('heading', { name: /^Modes Set by anonymous, .*“an incident”/ }),
    ).toBeVisible()
    for (const kind of ['replicas', 'tasks', 'moves', 'workload', 'volumes'])
      await expect(modes.getByRole('row', { name: new RegExp(`^${kind} off off shadow`) })).toBeVisible()
    mock.readOnly = true
    await page.getByLabel('Mode', { exact: true }).selectOption('on')
    await page.getByRole('button', { name: 'Change to on …' }).click()
    await page.getByRole('button', { name: 'Change to on', exact: true }).click()
    await expect(page.getByText('Nothing was changed.')).toBeVisible()
    await expect(modes.getByRole('row', { name: /^tasks off/ })).toBeVisible()
    mock.modes.change({ replicas: 'canary:10%:client' }, mock.world.time(mock.step))
    await expect(modes.getByRole('row', { name: /^replicas canary:10%:client/ })).toBeVisible()
  },
)

test('worth it: a verdict, the decisions that mattered, and a time span in the address', async ({
  page,
  open,
}) => {
  const mock = await open('worth')
  await expectLive(page)
  await expect(
    page.getByText(/^With Leeward’s choices, links are hot for .*\sh with the default policy’s: \d+\s% less/),
  ).toBeVisible()
  const mattered = page.getByRole('region', { name: 'Decisions that mattered most', exact: true }).last()
  await expect(mattered.getByRole('row')).toHaveCount(11)
  await page.getByLabel('Time', { exact: true }).selectOption('7 days')
  await expect(page).toHaveURL(/#\/worth\?since=7d$/)
  await expect(page.getByText(/in each 60\smin/)).toBeVisible()
  await mattered.getByRole('link').first().click()
  await expect(page.getByRole('heading', { level: 2 })).toContainText('Decision d-')
  mock.missing.push('summary')
  await page.evaluate(() => (location.hash = '#/worth'))
  await expect(page.getByText('Not found')).toBeVisible()
})

test('every page explains its numbers, reachable by keyboard', async ({ page, open }) => {
  await open('racks')
  await expectLive(page)
  for (const [path, word] of [
    ['racks', 'Share of link time hot'],
    ['racks/r12', 'Residual for best effort'],
    ['hotspots', 'Load of others'],
    ['decisions', 'Bottleneck'],
    ['worth', 'Hot link-hours'],
    ['service', 'Lag'],
  ] as const) {
    await page.evaluate((path) => (location.hash = `#/${path}`), path)
    await expect(page.getByText(/^Loading/)).toHaveCount(0)
    const summary = page.getByText('What the numbers mean')
    await summary.focus()
    await page.keyboard.press('Enter')
    await expect(page.getByRole('term').filter({ hasText: word }).last()).toBeVisible()
    await expectAccessible(page)
  }
})
