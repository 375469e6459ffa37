package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const licensesFile = "THIRD-PARTY-LICENSES"

// licenseName matches the names of files whose text must accompany a copy of a module.
var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// module is a Go module that at least one published program is linked with.
type module struct{ path, version, dir string }

// licenses writes the license texts of everything that the published programs for all systems are linked with:
// of the Go standard library, and of each module.
func (o *options) licenses(dir string) error {
	root, err := o.output("go", "env", "GOROOT")
	if err != nil {
		return err
	}
	modules := []module{{"the Go standard library", "", strings.TrimSpace(string(root))}}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		list, err := o.outputOn(goos, "go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}",
			"github.com/varve-db/varve/cmd/memctl")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(list)) {
			if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 &&
				!slices.Contains(modules, module{f[0], f[1], f[2]}) {
				modules = append(modules, module{f[0], f[1], f[2]})
			}
		}
	}
	slices.SortFunc(modules[1:], func(a, b module) int { return strings.Compare(a.path, b.path) })
	var text bytes.Buffer
	text.WriteString("memctl contains the following, under these licences.\n")
	for _, m := range modules {
		if err := m.licenses(&text); err != nil {
			return err
		}
	}
	return o.write(filepath.Join(dir, licensesFile), text.Bytes())
}

func (m *module) licenses(text *bytes.Buffer) error {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenseName.MatchString(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(m.dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		name := strings.TrimSpace(m.path + " " + m.version)
		fmt.Fprintf(text, "\n%[1]s\n%[2]s, %[3]s\n%[1]s\n\n%[4]s\n", strings.Repeat("=", 80), name, e.Name(),
			bytes.TrimSpace(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))))
	}
	if !found {
		return fmt.Errorf("no license file in %s: find out under which license %s is published", m.dir, m.path)
	}
	return nil
}
