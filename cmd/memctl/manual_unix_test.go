//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// pagesIn are the manual pages that memctl writes, by the names of their files.
func pagesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	cmd := command(t, "manual", dir)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1769871845")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pages := map[string]string{}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range names {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(path)] = string(text)
	}
	return pages
}

// Every command has a page, two runs write the same bytes, and the date is the one that is given.
func TestManual(t *testing.T) {
	t.Parallel()
	pages, again := pagesIn(t, t.TempDir()), pagesIn(t, t.TempDir())
	n := 0
	for _, c := range commandsBelow((&cli.App{}).Program(root)) {
		if c.HasParent() && !c.IsAvailableCommand() {
			continue
		}
		n++
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		if pages[name] == "" || pages[name] != again[name] {
			t.Errorf("%s is missing, or differs between two runs", name)
		}
		if !strings.Contains(pages[name], `"2026\-01\-31"`) {
			t.Errorf("%s: %.80s", name, pages[name])
		}
	}
	if len(pages) != n {
		t.Errorf("%d pages, %d commands", len(pages), n)
	}
}

// groff, which man calls, shows the pages without a warning, with all the words of the help.
func TestManualIsShown(t *testing.T) {
	t.Parallel()
	tool(t, "groff")
	dir := t.TempDir()
	args := []string{"-man", "-ww", "-Kutf8", "-Tutf8", "-P-c", "-rLL=200n"}
	for name := range pagesIn(t, dir) {
		args = append(args, filepath.Join(dir, name))
	}
	cmd := exec.Command("groff", args...)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil || errOut.Len() > 0 {
		t.Fatalf("%v: %s", err, errOut.String())
	}
	word := regexp.MustCompile(`[A-Za-z0-9_@/.=:*-]+`)
	shown := map[string]bool{}
	for _, w := range word.FindAllString(regexp.MustCompile(`.\x08`).ReplaceAllString(string(out), ""), -1) {
		shown[w] = true
	}
	for _, c := range commandsBelow((&cli.App{}).Program(root)) {
		if c.HasParent() && !c.IsAvailableCommand() {
			continue
		}
		for _, w := range word.FindAllString(strings.ReplaceAll(c.Long+"\n"+c.Example, "…", "..."), -1) {
			if !shown[w] {
				t.Errorf("%s: %q is not shown", c.CommandPath(), w)
			}
		}
	}
}
