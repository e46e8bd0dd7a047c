import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Decision, Migration, Page as List } from '../../src/api/types'
import { expectAccessible, COMMAND, evenLoads, expect, expectLive, type Service, test } from './fixture.ts'

/** Places movable tasks and reports a full uplink until the service advises moves; returns the moves. */
async function adviseMoves(service: Service): Promise<Migration[]> {
  const tasks = [{ name: 'crawl', cpus: 1, memory: '1GiB', egress: { mean: '1Mbps' }, tolerant: true }]
  const decisions: Decision[] = []
  await service.report(evenLoads(6, 8, 1e9, 1e8))
  for (let at = 0; at < 12; at++)
    decisions.push(await service.request('POST', '/v1/place/tasks', { job: `job-${at}`, app: { tasks } }))
  const rack = (one: Decision) => one.hosts[0]?.replace(/h\d+$/, '') ?? ''
  const racks = decisions.map(rack)
  const busiest = racks.reduce((a, b) => {
    const many = (name: string) => racks.filter((one) => one === name).length
    return many(b) > many(a) ? b : a
  })
  const busy = decisions.filter((one) => rack(one) === busiest).map((one): [string, number] => [one.id, 5e9])
  for (let at = 0; at < 60; at++) {
    await service.report(
      { ...evenLoads(6, 8, 1e9, 1e8), [`${busiest}:uplink`]: 17e9 },
      Object.fromEntries(busy),
    )
    const { items } = await service.request<List<Migration>>('GET', '/v1/migrations')
    if (items.length) return items
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  throw new Error('the service advised no move')
}

const host = async (service: Service, { decision }: Migration) =>
  (await service.request<Decision>('GET', `/v1/decisions/${decision}`)).hosts[0]

test('the page refuses a move with a reason, and the service returns the task to its host', async ({
  page,
  start,
  visit,
}) => {
  const service = await start('racks', ['--task-policy', 'borg', '--moves', 'utp'])
  const [move] = await adviseMoves(service)
  if (!move) throw new Error('no move')
  expect(await host(service, move)).toBe(move.to)
  await visit(service, 'hotspots')
  const row = page.getByRole('region', { name: 'Moves' }).getByRole('row').nth(1)
  await expect(row).toContainText(`${move.from} → ${move.to}`)
  await row.getByRole('button', { name: 'crawl stays' }).click()
  await page.getByLabel('Reason').fill('it holds a lock')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('region', { name: 'Moves' })).toContainText('it holds a lock')
  expect(await host(service, move)).toBe(move.from)
  const { items } = await service.request<List<Migration>>('GET', '/v1/migrations')
  expect(items.find((one) => one.id === move.id)).toMatchObject({
    state: 'refused',
    reason: 'it holds a lock',
  })
})

test('the page requests a token; role read cannot answer moves, role place can', async ({
  page,
  start,
  visit,
}, info) => {
  const file = info.outputPath('tokens')
  writeFileSync(file, '')
  const token = (role: string) =>
    execFileSync(COMMAND, ['token', 'new', '--name', role, '--role', role, '--tokens', file], {
      stdio: ['ignore', 'pipe', 'ignore'],
      encoding: 'utf8',
    }).trim()
  const [read, place] = [token('read'), token('place')]
  expect(readFileSync(file, 'utf8')).not.toContain(place)
  const options = ['--task-policy', 'borg', '--moves', 'utp', '--tokens', file]
  const service = await start('racks', options, place)
  const [move] = await adviseMoves(service)
  await visit(service, 'hotspots')
  const dialog = page.getByRole('dialog', { name: 'This service requires a token' })
  await expect(dialog).toBeVisible()
  await dialog.getByLabel('Token').fill(read)
  await page.keyboard.press('Enter')
  const moves = page.getByRole('region', { name: 'Moves' })
  const movedButton = moves.getByRole('row').nth(1).getByRole('button', { name: 'was moved' })
  await movedButton.click()
  await expect(moves.getByRole('alert')).toContainText(/role/)
  await expectAccessible(page)
  await page.getByRole('button', { name: 'Token', exact: true }).click()
  await page.getByLabel('Token', { exact: true }).fill(place)
  await page.keyboard.press('Enter')
  await service.report(evenLoads(6, 8, 1e9, 1e8))
  await expectLive(page)
  await movedButton.click()
  await expect(moves.locator('.tag', { hasText: 'done' })).toBeVisible()
  const { items } = await service.request<List<Migration>>('GET', '/v1/migrations?state=done')
  expect(items.map((one) => one.id)).toContain(move?.id)
  // The decision shows the new host.
  await moves.locator(`[href="#/decisions/${move?.decision}"]`).click()
  const hosts = page.getByRole('list', { name: 'Hosts' })
  await expect(hosts.getByRole('listitem')).toHaveText(`crawl ${move?.to} moved from ${move?.from}`)
})
