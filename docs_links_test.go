package varve_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/varve-db/varve/internal/proofs"
)

// documents returns the Markdown files of the module, with slashes.
func documents(t *testing.T) (list []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" ||
			d.Name() == "node_modules"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".md"):
			list = append(list, filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// prose returns a document line by line; code blocks are empty lines, and code spans are blank.
func prose(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	span := regexp.MustCompile("`[^`]*`")
	list, fenced := strings.Split(string(text), "\n"), false
	for i, line := range list {
		fence := strings.HasPrefix(strings.TrimLeft(line, " "), "```")
		if fenced = fenced != fence; fenced || fence {
			list[i] = ""
			continue
		}
		list[i] = span.ReplaceAllStringFunc(line, func(s string) string { return "`" + strings.Repeat("x", len(s)-2) + "`" })
	}
	return list
}

// anchors returns the anchors that GitHub makes from the headings of a document.
func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	shown := strings.Split(string(text), "\n")
	found := map[string]bool{}
	for i, line := range prose(t, file) {
		if !heading.MatchString(line) {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, heading.FindStringSubmatch(shown[i])[1])
		for n := 1; found[name]; n++ {
			if next := name + "-" + string(rune('0'+n)); !found[next] {
				name = next
			}
		}
		found[name] = true
	}
	return found
}

// TestDocsLinks verifies that each link of a document to a file or to a heading leads to one, and that docs/README.md
// links to every page of docs/.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)|^\[[^\]]+\]: +(\S+)`)
	followed, indexed := 0, map[string]bool{"docs/README.md": true}
	for _, file := range documents(t) {
		for i, line := range prose(t, file) {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				to, err := url.Parse(m[1] + m[2])
				if err != nil {
					t.Errorf("%s:%d: %v", file, i+1, err)
					continue
				}
				if to.Scheme != "" {
					continue
				}
				target := file
				if to.Path != "" {
					target = filepath.ToSlash(filepath.Join(filepath.Dir(file), filepath.FromSlash(to.Path)))
				}
				followed++
				if file == "docs/README.md" {
					indexed[target] = true
				}
				if _, err := os.Stat(target); err != nil {
					t.Errorf("%s:%d: %s leads nowhere: %v", file, i+1, m[1]+m[2], err)
					continue
				}
				if to.Fragment != "" && strings.HasSuffix(target, ".md") && !anchors(t, target)[to.Fragment] {
					t.Errorf("%s:%d: %s has no heading #%s", file, i+1, target, to.Fragment)
				}
			}
		}
	}
	if followed < 100 {
		t.Errorf("only %d links: they are not read", followed)
	}
	for _, file := range documents(t) {
		if strings.HasPrefix(file, "docs/") && !indexed[file] {
			t.Errorf("docs/README.md has no link to %s", file)
		}
	}
}

// TestDocsGo verifies that each block of Go in docs/ is a part of an example, which go test compiles and runs.
func TestDocsGo(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	names, err := filepath.Glob("example_*_test.go")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	examples := ""
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		examples += flat(string(text)) + "\n"
	}
	block := regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	for _, file := range documents(t) {
		if !strings.HasPrefix(file, "docs/") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(examples, flat(m[1])) {
				t.Errorf("%s: no example_*_test.go has this, so that nothing compiles it:\n%s", file, m[1])
			}
		}
	}
}

// TestArchitecture verifies that each package and source file that docs/architecture.md names exists; a bare name of a
// file is in a folder that its line names, or in the root.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	name := regexp.MustCompile("`([a-z_]+(?:/[a-z_]+)*(?:/[a-z_]+|\\.go))`")
	for _, line := range strings.Split(string(text), "\n") {
		dirs := []string{"."}
		for _, m := range name.FindAllStringSubmatch(line, -1) {
			if strings.Contains(m[1], "/") {
				dirs = append(dirs, m[1], filepath.Dir(m[1]))
			}
		}
		for _, m := range name.FindAllStringSubmatch(line, -1) {
			in := dirs
			if strings.Contains(m[1], "/") {
				in = dirs[:1]
			}
			if !slices.ContainsFunc(in, func(dir string) bool {
				_, err := os.Stat(filepath.Join(dir, m[1]))
				return err == nil
			}) {
				t.Errorf("%s is not there", m[1])
			}
			found++
		}
	}
	if found < 25 {
		t.Errorf("found only %d names", found)
	}
}
