// Package browser tests the status page in headless Chromium, driven by Playwright, with real sequins
// processes that are healthy, loading and failing, and with a cluster that has lost a node.
//
// A test creates a situation and passes its address to page.mjs, which checks the page. If the situation must change
// during the test, page.mjs requests it (see script). With -screenshots, page.mjs takes screenshots into .cache/screenshots:
// light, dark, and as wide as a phone.
package browser
