// Package page tests the page of a server (package server/page) in Chromium, and measures it. It is in this module so
// that the driver of the browser is no dependency of the store.
//
//	go test ./page                              clicks, hostile text, two tabs, a server that restarts, axe-core
//	go test ./page -run TestShots -shots DIR    pictures of all views: three widths, light and dark
//	go test ./page -run TestSpeed -speed 100000 -v    first paint, search as one types and live updates
//
// It needs Chromium (Debian: apt-get install chromium), and npm for axe-core, which it installs once into the user's
// cache. Without them the tests skip, or fail with VARVE_CI=1.
package page
