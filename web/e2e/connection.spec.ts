import type { Page } from '@playwright/test'
import { accessible, expect, live, pass, test } from './fixture.ts'

/** Pixels of a part of the page that are not grey. */
async function coloured(page: Page, part: string): Promise<number> {
  const picture = await page.locator(part).first().screenshot()
  return page.evaluate(async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
    const image = await createImageBitmap(new Blob([bytes]))
    const context = new OffscreenCanvas(image.width, image.height).getContext('2d')
    context?.drawImage(image, 0, 0)
    const { data = [] } = context?.getImageData(0, 0, image.width, image.height) ?? {}
    let found = 0
    for (let at = 0; at < data.length; at += 4) {
      const [red = 0, green = 0, blue = 0] = data.slice(at, at + 3)
      if (Math.max(red, green, blue) - Math.min(red, green, blue) > 8) found++
    }
    return found
  }, picture.toString('base64'))
}

test('a lost connection is told, data do not look live, and all is caught up on after', async ({
  page,
  open,
}) => {
  const mock = await open('racks')
  await live(page)
  await expect(page.getByRole('heading', { name: 'Now' })).toBeVisible()
  expect(await coloured(page, 'section.data')).toBeGreaterThan(1000)
  mock.leave()
  const state = page.getByRole('banner').getByRole('status')
  await expect(state).toHaveText(/not connected/)
  await expect(
    page.getByText(/The service does not answer\. What you see is .* old\. Trying again/),
  ).toBeVisible()
  await expect(page.getByRole('heading', { name: 'Now' })).toHaveCount(0)
  await expect(page.getByRole('heading', { name: /^Last seen, \d\d:\d\d:\d\d$/ })).toBeVisible()
  await expect(page.getByText('Hot when last seen')).toBeVisible()
  expect(await coloured(page, 'section.data')).toBe(0)
  await accessible(page)
  await page.goto(page.url().replace('racks', 'decisions'))
  for (let at = 0; at < 3; at++) mock.tick()
  mock.back()
  await expect(state).toHaveText(/live/)
  const made = mock.world.decisions(mock.step)
  await expect(
    page.getByRole('region', { name: 'List of decisions' }).getByRole('link').first(),
  ).toHaveAttribute('href', `#/decisions/${made.at(-1)?.id}`)
})

test('events that were missed are asked for after the last that came', async ({ page, open }) => {
  const asked: (string | undefined)[] = []
  page.on('request', (request) => {
    if (request.url().endsWith('/v1/events')) asked.push(request.headers()['last-event-id'])
  })
  const mock = await open('decisions')
  await live(page)
  await pass(mock, page, 1)
  await page.waitForTimeout(200)
  mock.leave()
  mock.back()
  await expect.poll(() => asked.length).toBeGreaterThan(1)
  expect(asked[0]).toBeUndefined()
  expect(Number(asked[1])).toBeGreaterThan(0)
})

test('a service that is connected and silent is not live', async ({ page, open }) => {
  await page.clock.install()
  await open('racks')
  await live(page)
  await page.clock.runFor(35_000)
  await expect(page.getByRole('banner').getByRole('status')).toHaveText(/silent|old telemetry/)
  await expect(page.getByRole('heading', { name: 'Now' })).toHaveCount(0)
})

test('a token is asked for, kept for this session, and forgotten on demand', async ({ page, open }) => {
  await open('racks', { token: 'sesame' })
  const dialog = page.getByRole('dialog', { name: 'This service asks for a token' })
  await expect(dialog).toBeVisible()
  await accessible(page)
  // Tab stays inside: it goes through the dialog and the browser, and never to the page below.
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
  await live(page)
  await expect(dialog).toBeHidden()
  await page.reload()
  await live(page)
  expect(
    await page.evaluate(() => [
      sessionStorage.getItem('leeward-token'),
      localStorage.getItem('leeward-token'),
    ]),
  ).toEqual(['sesame', null])
  await page.getByRole('button', { name: 'Token' }).click()
  await page.getByRole('button', { name: 'Forget the token' }).click()
  await expect(page.getByRole('banner').getByRole('status')).toHaveText(/no access/)
  expect(await page.evaluate(() => sessionStorage.getItem('leeward-token'))).toBeNull()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('button', { name: 'Give a token' })).toBeVisible()
})

test('history is asked for once a connection, and not again with every status', async ({ page, open }) => {
  const asked: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('/v1/history')) asked.push(request.url())
  })
  const mock = await open('racks')
  await live(page)
  await expect.poll(() => asked.length).toBe(1)
  await pass(mock, page, 3)
  await page.waitForTimeout(6500)
  expect(asked).toHaveLength(1)
  await page.getByLabel('Time', { exact: true }).selectOption('15 min')
  await expect.poll(() => asked.length).toBe(2)
})

test('what cannot be caught up on is not live, and is tried again', async ({ page, open }) => {
  let broken = true
  await page.route('**/v1/racks?*', (route) => {
    const body = JSON.stringify({ type: 'urn:leeward:problem:busy', title: 'Too much is asked', status: 503 })
    return broken
      ? route.fulfill({ status: 503, contentType: 'application/problem+json', body })
      : route.continue()
  })
  await open('racks')
  await expect(page.getByText(/Too much is asked\. Trying again/)).toBeVisible()
  broken = false
  await expect(page.getByRole('banner').getByRole('status')).toHaveText(/live/)
})
