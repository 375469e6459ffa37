package page

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// axeVersion is the version of axe-core that judges.
const axeVersion = "4.10.3"

// axe returns the script of axe-core, which npm installs once into the user's cache.
func axe(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "varve-test", "axe-core-"+axeVersion)
	file := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(file); err != nil {
		if _, err := exec.LookPath("npm"); err != nil {
			lacks(t, "npm is not installed: apt-get install npm")
		}
		out, err := exec.Command("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", dir,
			"axe-core@"+axeVersion).CombinedOutput()
		if err != nil {
			lacks(t, "axe-core cannot be installed: "+string(out))
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Axe-core finds nothing on any view, light and dark, wide and narrow.
func TestAxe(t *testing.T) {
	script := axe(t)
	s := newSite(t)
	s.fill()
	b := s.newTab()
	// The page's own policy stays; only the script of the judge, which makes elements of text, is let in.
	b.do(cdppage.SetBypassCSP(true), chromedp.Reload(), chromedp.WaitVisible("main .head"),
		chromedp.Evaluate(script, nil))
	for _, look := range []struct {
		width  int64
		scheme string
	}{{380, "light"}, {1280, "dark"}} {
		b.do(chromedp.EmulateViewport(look.width, 900),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: look.scheme}}))
		for _, v := range views {
			b.open(v)
			var found string
			b.do(chromedp.Evaluate(`axe.run(document, {resultTypes: ['violations']}).then(r =>
				JSON.stringify(r.violations.map(v => ({id: v.id, help: v.help,
					nodes: v.nodes.map(n => n.html + ' ' + n.failureSummary)}))))`, &found, chromedp.EvalAsValue, awaits))
			var list []struct {
				ID, Help string
				Nodes    []string
			}
			if err := json.Unmarshal([]byte(found), &list); err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				t.Errorf("%s, %d px, %s: %s (%s) in %d places: %.300q", v, look.width, look.scheme, x.ID, x.Help,
					len(x.Nodes), x.Nodes[0])
			}
		}
	}
}
