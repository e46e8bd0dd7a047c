import type { Decided, Decision, Status } from '../../src/api/types'
import { even, expect, feed, live, readable, test } from './fixture.ts'

test('what another policy would do is decided on the ledger of now, stands beside what was done, and commits nothing', async ({
  page,
  start,
  visit,
}) => {
  const service = await start('racks')
  const carried = even(6, 8, 4e9, 5e8)
  await feed(page, service, carried)
  const made = await service.ask<Decision>('POST', '/v1/place/replicas', {
    size: '256MiB',
    writer: 'r0h1',
  })
  const rack = made.hosts[1]?.replace(/h\d+$/, '') ?? ''
  // Its host is nearly full by now.
  carried[`${rack}:downlink`] = 19e9
  await visit(service, `decisions/${made.id}`)
  await live(page)
  await page.goto(page.url().replace(/#.*/, '#/hotspots'))
  await expect(page.getByRole('row', { name: new RegExp(`^${rack}:downlink`) })).toBeVisible()
  await page.goto(page.url().replace(/#.*/, `#/decisions/${made.id}`))

  const choice = page.getByLabel('What if another policy had decided?')
  // The one that decided is not among them.
  await expect(choice.getByRole('option', { name: made.policy, exact: true })).toHaveCount(0)
  const answered = page.waitForResponse(/\/what-if$/)
  await choice.selectOption('leeward')
  const answer = (await (await answered).json()) as Decided
  const other = page.getByRole('region', { name: 'What if: leeward', exact: true })
  await expect(other.getByRole('list', { name: 'Hosts' }).locator('.only')).toHaveCount(2)
  expect(answer.hosts.filter((host) => host.startsWith(`${rack}h`))).toEqual([])
  for (const host of answer.hosts)
    await expect(other.getByRole('list', { name: 'Hosts' })).toContainText(host)
  await expect(other).toContainText(`Narrowest at ${answer.limit?.at}`)
  await expect(page.getByText('leeward would choose 2 of 3 hosts differently.')).toBeVisible()
  const before = page.getByRole('region', { name: `As decided: ${made.policy}`, exact: true })
  await expect(before.getByRole('list', { name: 'Hosts' })).toContainText(made.hosts[1] ?? '')
  await readable(page)

  await choice.selectOption('uniform')
  await expect(page.getByText(/^uniform would choose/)).toBeVisible()
  expect((await service.ask<Status>('GET', '/v1/status')).decided).toBe(1)
  const kept = await service.ask<Decision>('GET', `/v1/decisions/${made.id}`)
  expect(kept.hosts).toEqual(made.hosts)
})
