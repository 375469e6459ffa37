package varve_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// habits are turns of phrase over which a reader stumbles, and what to write instead.
var habits = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\banew\b`), "rebuild, recreate, again"},
	{regexp.MustCompile(`(?i)\bwho(so)?ever\b`), "name the actor, or say that it does not matter which"},
	{regexp.MustCompile(`(?i)\bfor\s+ever\b`), "forever, without end"},
	{regexp.MustCompile(`(?i)\bbut\s+for\b`), "except, except for, unless"},
	{regexp.MustCompile(`(?i)\bwhat\s+lies\b`), "what is, what follows, the files in"},
	{regexp.MustCompile(`(?i)\b(no|some|every|any)body's\b`), "name the owner: a user's, no id's, another process's"},
	{regexp.MustCompile(`(?i)\bnobody\s+(knows|can\s+tell)\b`), "it is unknown, it cannot be told"},
	{regexp.MustCompile(`(^|[.:;]\s+)Who\s`), "name the actor: a process that, a caller that; deleting a memory"},
}

// pinned are phrases and whole strings that stay: values in --json, which programs compare, and
// names of flags.
var (
	pinned = []string{
		"write the checkpoint anew", "begin the log anew", "make log and index anew",
		"make the scope anew", "make the vectors anew", "vectors made anew", // repair's verbs, an event
		"reindex --anew",
	}
	pinnedStrings = []string{"made anew", "opening makes it anew", "anew"}
)

// TestLanguage goes over the comments and strings of all packages but their tests, and over all
// documents.
func TestLanguage(t *testing.T) {
	check := func(file string, line int, text string) {
		for _, p := range pinned {
			text = strings.ReplaceAll(text, p, "")
		}
		for _, h := range habits {
			for _, at := range h.phrase.FindAllStringIndex(text, -1) {
				found := strings.TrimLeft(text[at[0]:at[1]], ".:; \t\n")
				t.Errorf("%s:%d: %q: better: %s", file, line+strings.Count(text[:at[1]-len(found)], "\n"), found, h.instead)
			}
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go"):
			return nil
		case strings.HasSuffix(path, ".md"):
			text, err := os.ReadFile(path)
			check(path, 1, string(text))
			return err
		case strings.HasSuffix(path, ".go"):
			return goTexts(path, check)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goTexts passes each group of comments and each string of a file, with the line where it begins.
func goTexts(path string, check func(file string, line int, text string)) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range f.Comments {
		var text strings.Builder
		for _, c := range group.List {
			text.WriteString(strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " ") + "\n")
		}
		check(path, fset.Position(group.Pos()).Line, text.String())
	}
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		for _, p := range pinnedStrings {
			if err == nil && text == p {
				return true
			}
		}
		check(path, fset.Position(lit.Pos()).Line, lit.Value)
		return true
	})
	return nil
}
