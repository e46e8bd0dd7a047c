import type { PolicyResult, Decision, Status } from '../../src/api/types'
import { evenLoads, expect, feed, expectLive, expectReadable, test } from './fixture.ts'

test('a what-if uses the current ledger, appears beside the decision, and commits nothing', async ({
  page,
  start,
  visit,
}) => {
  const service = await start('racks')
  const carried = evenLoads(6, 8, 4e9, 5e8)
  await feed(page, service, carried)
  const decision = await service.request<Decision>('POST', '/v1/place/replicas', {
    size: '256MiB',
    writer: 'r0h1',
  })
  const rack = decision.hosts[1]?.replace(/h\d+$/, '') ?? ''
  // The rack of the chosen host is now nearly full.
  carried[`${rack}:downlink`] = 19e9
  await visit(service, `decisions/${decision.id}`)
  await expectLive(page)
  await page.goto(page.url().replace(/#.*/, '#/hotspots'))
  await expect(page.getByRole('row', { name: new RegExp(`^${rack}:downlink`) })).toBeVisible()
  await page.goto(page.url().replace(/#.*/, `#/decisions/${decision.id}`))

  const choice = page.getByLabel('What if another policy had decided?')
  // The list excludes the policy that decided.
  await expect(choice.getByRole('option', { name: decision.policy, exact: true })).toHaveCount(0)
  const response = page.waitForResponse(/\/what-if$/)
  await choice.selectOption('leeward')
  const answer = (await (await response).json()) as PolicyResult
  const other = page.getByRole('region', { name: 'What if: leeward', exact: true })
  await expect(other.getByRole('list', { name: 'Hosts' }).locator('.only')).toHaveCount(2)
  expect(answer.hosts.filter((host) => host.startsWith(`${rack}h`))).toEqual([])
  for (const host of answer.hosts)
    await expect(other.getByRole('list', { name: 'Hosts' })).toContainText(host)
  await expect(other).toContainText(`Bottleneck: ${answer.limit?.at}`)
  await expect(page.getByText('leeward would choose 2 of 3 hosts differently.')).toBeVisible()
  const before = page.getByRole('region', { name: `As decided: ${decision.policy}`, exact: true })
  await expect(before.getByRole('list', { name: 'Hosts' })).toContainText(decision.hosts[1] ?? '')
  await expectReadable(page)

  await choice.selectOption('uniform')
  await expect(page.getByText(/^uniform would choose/)).toBeVisible()
  expect((await service.request<Status>('GET', '/v1/status')).decided).toBe(1)
  const stored = await service.request<Decision>('GET', `/v1/decisions/${decision.id}`)
  expect(stored.hosts).toEqual(decision.hosts)
})
