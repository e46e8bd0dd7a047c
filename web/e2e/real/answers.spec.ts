import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Decision, Migration, Page as List } from '../../src/api/types'
import { accessible, COMMAND, even, expect, live, type Service, test } from './fixture.ts'

/** Places tasks that may be moved and reports that they fill the uplink of a rack, until moves are advised. */
async function advised(service: Service): Promise<Migration[]> {
  const tasks = [{ name: 'crawl', cpus: 1, memory: '1GiB', egress: { mean: '1Mbps' }, tolerant: true }]
  const made: Decision[] = []
  await service.report(even(6, 8, 1e9, 1e8))
  for (let at = 0; at < 12; at++)
    made.push(await service.ask('POST', '/v1/place/tasks', { job: `job-${at}`, app: { tasks } }))
  const rack = (one: Decision) => one.hosts[0]?.replace(/h\d+$/, '') ?? ''
  const racks = made.map(rack)
  const busiest = racks.reduce((a, b) => {
    const many = (name: string) => racks.filter((one) => one === name).length
    return many(b) > many(a) ? b : a
  })
  const busy = made.filter((one) => rack(one) === busiest).map((one): [string, number] => [one.id, 5e9])
  for (let at = 0; at < 60; at++) {
    await service.report({ ...even(6, 8, 1e9, 1e8), [`${busiest}:uplink`]: 17e9 }, Object.fromEntries(busy))
    const { items } = await service.ask<List<Migration>>('GET', '/v1/migrations')
    if (items.length) return items
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  throw new Error('nothing was advised')
}

const host = async (service: Service, { decision }: Migration) =>
  (await service.ask<Decision>('GET', `/v1/decisions/${decision}`)).hosts[0]

test('a move is refused on the page with a reason, and the service has the task back where it was', async ({
  page,
  start,
  visit,
}) => {
  const service = await start('racks', ['--task-policy', 'borg', '--moves', 'utp'])
  const [move] = await advised(service)
  if (!move) throw new Error('no move')
  expect(await host(service, move)).toBe(move.to)
  await visit(service, 'hotspots')
  const row = page.getByRole('region', { name: 'Moves' }).getByRole('row').nth(1)
  await expect(row).toContainText(`${move.from} → ${move.to}`)
  await row.getByRole('button', { name: 'crawl stays' }).click()
  await page.getByLabel('Why it stays').fill('it holds a lock')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('region', { name: 'Moves' })).toContainText('it holds a lock')
  expect(await host(service, move)).toBe(move.from)
  const { items } = await service.ask<List<Migration>>('GET', '/v1/migrations')
  expect(items.find((one) => one.id === move.id)).toMatchObject({
    state: 'refused',
    reason: 'it holds a lock',
  })
})

test('a token is asked for; one that may only look is refused where it answers, one that may place is not', async ({
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
  const [move] = await advised(service)
  await visit(service, 'hotspots')
  const dialog = page.getByRole('dialog', { name: 'This service asks for a token' })
  await expect(dialog).toBeVisible()
  await dialog.getByLabel('Token').fill(read)
  await page.keyboard.press('Enter')
  const moves = page.getByRole('region', { name: 'Moves' })
  const moved = moves.getByRole('row').nth(1).getByRole('button', { name: 'was moved' })
  await moved.click()
  await expect(moves.getByRole('alert')).toContainText(/role/)
  await accessible(page)
  await page.getByRole('button', { name: 'Token', exact: true }).click()
  await page.getByLabel('Token', { exact: true }).fill(place)
  await page.keyboard.press('Enter')
  await service.report(even(6, 8, 1e9, 1e8))
  await live(page)
  await moved.click()
  await expect(moves.locator('.tag', { hasText: 'done' })).toBeVisible()
  const { items } = await service.ask<List<Migration>>('GET', '/v1/migrations?state=done')
  expect(items.map((one) => one.id)).toContain(move?.id)
  // The decision shows the outcome.
  await moves.locator(`[href="#/decisions/${move?.decision}"]`).click()
  const hosts = page.getByRole('list', { name: 'Hosts' })
  await expect(hosts.getByRole('listitem')).toHaveText(`crawl ${move?.to} moved from ${move?.from}`)
})
