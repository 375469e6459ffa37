package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every file that .goreleaser.yaml names is there, or is written by this command; where there is a
// goreleaser, it finds no mistake. Debian has none: packaging/test builds with it.
func TestReleaseConfig(t *testing.T) {
	t.Parallel()
	top := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(top, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	made := []string{"dist-extra/" + manFolder + "/*", "dist-extra/" + storeArchive, "dist-extra/" + licensesFile}
	for _, c := range completions {
		made = append(made, "dist-extra/"+completionFolder+"/"+c[1])
	}
	names := regexp.MustCompile(`(?m)(?:src|dockerfile|main): "?([^",}\s]+)|extra_files: \[([^\]]+)\]`).FindAllStringSubmatch(string(text), -1)
	if len(names) < 10 {
		t.Errorf("only %d files are named: %q", len(names), names)
	}
	var all []string
	for _, m := range names {
		all = append(append(all, m[1]), strings.Split(m[2], ", ")...)
	}
	for _, name := range slices.DeleteFunc(all, func(s string) bool { return s == "" }) {
		if strings.HasPrefix(name, "dist-extra/") {
			if ok := strings.Join(made, "\n") + "\n"; name != "dist-extra/completions/*" && !strings.Contains(ok, name+"\n") {
				t.Errorf("%s is not written by packaging/generate", name)
			}
		} else if _, err := os.Stat(filepath.Join(top, name)); err != nil {
			t.Error(err)
		}
	}
	program := os.Getenv("VARVE_GORELEASER")
	if program == "" {
		if program, err = exec.LookPath("goreleaser"); err != nil {
			t.Log("there is no goreleaser: only the names of files were checked")
			return
		}
	}
	cmd := exec.Command(program, "check")
	cmd.Dir = top
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("goreleaser check: %v: %s", err, out)
	}
}
