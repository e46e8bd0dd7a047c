import { fileURLToPath } from 'node:url'
import { AxeBuilder } from '@axe-core/playwright'
import { test as base, expect, type Page } from '@playwright/test'
import { Mock, type MockOptions } from '../mock/server.ts'

export { expect }

const DIST = fileURLToPath(new URL('../dist', import.meta.url))

interface ServerFixture {
  /** Servers of the test's pages. They stop with the test, and pages may send requests only to them. */
  servers: { url: string; close: () => void }[]
}

/** Test that fails if a page logs an error or sends a request to another origin. */
export const strictTest = base.extend<ServerFixture>({
  servers: async ({ page }, use) => {
    const servers: ServerFixture['servers'] = []
    const errors: string[] = []
    page.on('console', (message) => {
      const expected = /Failed to load resource|ERR_EMPTY_RESPONSE|ERR_CONNECTION|ERR_INCOMPLETE/
      if (message.type() === 'error' && !expected.test(message.text())) errors.push(message.text())
    })
    page.on('pageerror', (error) => errors.push(String(error)))
    page.on('request', (request) => {
      const here = servers.some(({ url }) => request.url().startsWith(url))
      if (!here && !request.url().startsWith('data:')) errors.push(`request to ${request.url()}`)
    })
    await use(servers)
    servers.forEach((server) => server.close())
    expect(errors, 'no errors and no requests to other origins').toEqual([])
  },
})

interface Fixtures {
  /** Starts a service of a simulated cluster and opens one of its pages. */
  open: (path?: string, options?: MockOptions) => Promise<Mock>
}

export const test = strictTest.extend<Fixtures>({
  open: async ({ page, servers }, use) => {
    await use(async (path = '', options = {}) => {
      const mock = new Mock(options)
      const server = await mock.serve(DIST)
      servers.push(server)
      await page.goto(server.url + (path ? `#/${path}` : ''))
      return mock
    })
  },
})

/** Expects that axe finds no accessibility violations on the page. */
export async function expectAccessible(page: Page): Promise<void> {
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
  const { violations } = await new AxeBuilder({ page }).withTags(tags).analyze()
  expect(
    violations.map(({ id, nodes }) => [
      id,
      nodes.map((node) => [node.html.slice(0, 160), node.failureSummary]),
    ]),
  ).toEqual([])
}

/** Tag of tests that run in the light and the dark theme. */
export const BOTH_THEMES = { tag: '@both' }

/** Waits until the page is live. */
export async function expectLive(page: Page): Promise<void> {
  await expect(page.getByRole('banner').getByRole('status')).toHaveText(/live/)
}

/** Advances the mock by a number of intervals; the page receives each before the next. */
export async function advance(mock: Mock, page: Page, ticks: number): Promise<void> {
  for (let at = 0; at < ticks; at++) {
    mock.tick()
    await page.waitForTimeout(30)
  }
}

/** Meters of the page: CPU time of its main thread, with layout and painting, and heap size. */
export async function meters(page: Page) {
  const browser = await page.context().newCDPSession(page)
  await browser.send('Performance.enable', { timeDomain: 'threadTicks' })
  const metric = async (key: string) => {
    const { metrics } = await browser.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === key)?.value ?? NaN
  }
  return {
    busy_ms: async () => 1000 * (await metric('TaskDuration')),
    heap_mib: async () => {
      await browser.send('HeapProfiler.collectGarbage')
      return (await metric('JSHeapUsedSize')) / 2 ** 20
    },
  }
}
