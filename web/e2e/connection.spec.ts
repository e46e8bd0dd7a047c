import type { Page } from '@playwright/test'
import { expectAccessible, expect, expectLive, advance, test } from './fixture.ts'

/** Number of pixels of an element that are not grey. */
async function colouredPixels(page: Page, part: string): Promise<number> {
  const picture = await page.locator(part).first().screenshot()
  return page.evaluate(async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
    const image = await createImageBitmap(new Blob([bytes]))
    const context = new OffscreenCanvas(image.width, image.height).getContext('2d')
    context?.drawImage(image, 0, 0)
    const { data = [] } = context?.getImageData(0, 0, image.width, image.height) ?? {}
    let count = 0
    for (let at = 0; at < data.length; at += 4) {
      const [red = 0, green = 0, blue = 0] = data.slice(at, at + 3)
      if (Math.max(red, green, blue) - Math.min(red, green, blue) > 8) count++
    }
    return count
  }, picture.toString('base64'))
}

test('a lost connection is shown, stale data is grey, and the page catches up after it', async ({
  page,
  open,
}) => {
  const mock = await open('racks')
  await expectLive(page)
  await expect(page.getByRole('heading', { name: 'Now' })).toBeVisible()
  expect(await colouredPixels(page, 'section.data')).toBeGreaterThan(1000)
  mock.stop()
  const state = page.getByRole('banner').getByRole('status')
  await expect(state).toHaveText(/not connected/)
  await expect(
    page.getByText(/The service does not answer\. The page shows data from .* ago\. Trying again/),
  ).toBeVisible()
  await expect(page.getByRole('heading', { name: 'Now' })).toHaveCount(0)
  await expect(page.getByRole('heading', { name: /^Last seen, \d\d:\d\d:\d\d$/ })).toBeVisible()
  await expect(page.getByText('Hot racks when last seen')).toBeVisible()
  expect(await colouredPixels(page, 'section.data')).toBe(0)
  await expectAccessible(page)
  await page.goto(page.url().replace('racks', 'decisions'))
  for (let at = 0; at < 3; at++) mock.tick()
  mock.resume()
  await expect(state).toHaveText(/live/)
  const decisions = mock.world.decisions(mock.step)
  await expect(
    page.getByRole('region', { name: 'List of decisions' }).getByRole('link').first(),
  ).toHaveAttribute('href', `#/decisions/${decisions.at(-1)?.id}`)
})

test('a new connection resumes after the last event', async ({ page, open }) => {
  const lastIds: (string | undefined)[] = []
  page.on('request', (request) => {
    if (request.url().includes('/v1/events')) lastIds.push(request.headers()['last-event-id'])
  })
  const mock = await open('decisions')
  await expectLive(page)
  await advance(mock, page, 1)
  await page.waitForTimeout(200)
  mock.stop()
  mock.resume()
  await expect.poll(() => lastIds.length).toBeGreaterThan(1)
  expect(lastIds[0]).toBeUndefined()
  expect(Number(lastIds[1])).toBeGreaterThan(0)
})

test('the page is not live if a connected service sends no data', async ({ page, open }) => {
  await page.clock.install()
  await open('racks')
  await expectLive(page)
  await page.clock.runFor(35_000)
  await expect(page.getByRole('banner').getByRole('status')).toHaveText(/no data|old telemetry/)
  await expect(page.getByRole('heading', { name: 'Now' })).toHaveCount(0)
})

test('the page requests a token, keeps it for this session, and removes it on demand', async ({
  page,
  open,
}) => {
  await open('racks', { token: 'sesame' })
  const dialog = page.getByRole('dialog', { name: 'This service requires a token' })
  await expect(dialog).toBeVisible()
  await expectAccessible(page)
  // Tab moves between the dialog and the browser's controls, and never reaches the page below.
  await expect(dialog.getByLabel('Token')).toBeFocused()
  for (let at = 0; at < 6; at++) {
    await page.keyboard.press('Tab')
    expect(
      await page.evaluate(
        () => document.activeElement?.closest('dialog') !== null || document.activeElement === document.body,
      ),
    ).toBe(true)
  }
  await dialog.getByLabel('Token').fill('wrong')
  await page.keyboard.press('Enter')
  await expect(dialog).toBeVisible()
  await dialog.getByLabel('Token').fill('sesame')
  await page.keyboard.press('Enter')
  await expectLive(page)
  await expect(dialog).toBeHidden()
  await page.reload()
  await expectLive(page)
  expect(
    await page.evaluate(() => [
      sessionStorage.getItem('leeward-token'),
      localStorage.getItem('leeward-token'),
    ]),
  ).toEqual(['sesame', null])
  await page.getByRole('button', { name: 'Token' }).click()
  await page.getByRole('button', { name: 'Remove the token' }).click()
  await expect(page.getByRole('banner').getByRole('status')).toHaveText(/no access/)
  expect(await page.evaluate(() => sessionStorage.getItem('leeward-token'))).toBeNull()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('button', { name: 'Enter a token' })).toBeVisible()
})

test('the page reads the history once per connection, and not with every status', async ({ page, open }) => {
  const requests: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('/v1/history')) requests.push(request.url())
  })
  const mock = await open('racks')
  await expectLive(page)
  await expect.poll(() => requests.length).toBe(1)
  await advance(mock, page, 3)
  await page.waitForTimeout(6500)
  expect(requests).toHaveLength(1)
  await page.getByLabel('Time', { exact: true }).selectOption('15 min')
  await expect.poll(() => requests.length).toBe(2)
})

test('the page is not live while the catch-up fails, and retries it', async ({ page, open }) => {
  let broken = true
  await page.route('**/v1/snapshot?*', (route) => {
    const body = JSON.stringify({
      type: 'urn:leeward:problem:busy',
      title: 'Too many requests wait',
      status: 503,
    })
    return broken
      ? route.fulfill({ status: 503, contentType: 'application/problem+json', body })
      : route.continue()
  })
  await open('racks')
  await expect(page.getByText(/Too many requests wait\. Trying again/)).toBeVisible()
  broken = false
  await expect(page.getByRole('banner').getByRole('status')).toHaveText(/live/)
})
