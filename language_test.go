package varve_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// habit is a phrase that readers stumble over, and its replacement.
type habit struct {
	phrase  *regexp.Regexp
	instead string
}

// habits are phrases that readers stumble over, and their replacements.
var habits = []habit{
	{regexp.MustCompile(`(?i)\banew\b`), "rebuild, recreate, again"},
	{regexp.MustCompile(`(?i)\bwho(so)?ever\b`), "name the actor, or say that it does not matter which"},
	{regexp.MustCompile(`(?i)\bfor\s+ever\b`), "forever, without end"},
	{regexp.MustCompile(`(?i)\bbut\s+for\b`), "except, except for, unless"},
	{regexp.MustCompile(`(?i)\bwhat\s+lies\b`), "what is, what follows, the files in"},
	{regexp.MustCompile(`(?i)\b(no|some|every|any)body's\b`), "name the owner: a user's, no id's, another process's"},
	{regexp.MustCompile(`(?i)\bnobody\s+(knows|can\s+tell)\b`), "it is unknown, it cannot be told"},
	{regexp.MustCompile(`(^|[.:;]\s+)Who\s`), "name the actor: a process that, a caller that; deleting a memory"},
}

// spoken are habits of messages and help texts: they are refused in the strings of the packages of plain.
var spoken = []habit{
	{regexp.MustCompile(`(?i)\b(no|some|every)body\b`), "name the actor: another process, no process, a user"},
	{regexp.MustCompile(`(?i)\bstands\b`), "is, is in, has"},
	{regexp.MustCompile(`(?i)\blies\b`), "is in, is"},
	{regexp.MustCompile(`(?i)\blook(s|ed|ing)?\s+after\b`), "manage, maintain"},
	{regexp.MustCompile(`\bWork\s+on\b`), "Manage"},
	{regexp.MustCompile(`\bMake\s+a\s+(new\s+)?store\b`), "Create a store"},
	{regexp.MustCompile(`(?i)\bwhat\s+there\s+is\b`), "name it: the memories of the store"},
	{regexp.MustCompile(`: it (is|was|has|had|must|does|did|belongs|changes)\b`),
		"name the thing, or leave the pronoun out"},
	{regexp.MustCompile(`(?i)\bleave\s+(\S+\s+)?out\b`), "omit"},
	{regexp.MustCompile(`(?i)\b(go|goes|went)\s+on\b`), "continue"},
	{regexp.MustCompile(`(?i)\bcall(s|ed)?\s+(\S+\s+){0,4}off\b`), "cancel"},
	{regexp.MustCompile(`(?i)\bgiven?\s+up\b`), "abandoned, canceled"},
	{regexp.MustCompile(`(?i)\b(one|each)\s+a\s+line\b`), "one per line"},
	{regexp.MustCompile(`(?i)\bputs?\s+(\S+\s+)?back\b`), "restore"},
	{regexp.MustCompile(`(?i)\ball\s+the\s+same\b`), "nevertheless, also"},
	{regexp.MustCompile(`^(it|its|they) [a-z]`), "name the thing, or leave the pronoun out"},
	{regexp.MustCompile(`(?i)\btaken\s+for\b`), "treated as"},
}

// told are habits of doc comments: they are refused in the comments of exported declarations, and of packages, of the
// packages of plain.
var told = []habit{
	{regexp.MustCompile(`(?i)\b(no|some|every)body\b`), "name the actor: another process, no process, a user"},
	{regexp.MustCompile(`(?i)\bhears?\s+(of|now)\b`), "receives, is called"},
	{regexp.MustCompile(`(?i)\ball\s+the\s+same\b`), "nevertheless, also"},
	{regexp.MustCompile(`(?i)\bwhat\s+stands\b`), "what is, the contents of"},
	{regexp.MustCompile(`(?i)\b(go|goes)\s+on\b`), "continue"},
	{regexp.MustCompile(`(?i)\btells\s+whether\b`), "reports whether"},
	{regexp.MustCompile(`(?i)\bis\s+there\s+already\b`), "exists"},
	{regexp.MustCompile(`(?i)\bzero\s+value\s+is\s+right\b`), "the zero value has the defaults"},
	{regexp.MustCompile(`(?i)\b(those|one|for|to|of|than)\s+who\b`), "name the actor: a process that, a caller that"},
	{regexp.MustCompile(`(?i)\b(stands?|stood)\s+(in|at|on|beside|there|within|between|where|alone)\b`), "is in, is at"},
	{regexp.MustCompile(`(?i)\b(lies|lay)\s+(in|at|on|above|below|beside|there|where)\b`), "is in, is at"},
	{regexp.MustCompile(`(?i)\bwhat\s+(stood|lay)\b`), "the previous file, the contents of"},
	{regexp.MustCompile(`(?i)\b(taken?|takes|took)\s+for\s+(an?|the|one|its)\b`), "treated as"},
	{regexp.MustCompile(`(?i)\bfor\s+people\b`), "for messages, for readers"},
	{regexp.MustCompile(`(?i)\b(counts?|counted)\s+for\s+nothing\b`), "is ignored"},
	{regexp.MustCompile(`(?i)\blets?\s+go\s+of\b`), "releases"},
	{regexp.MustCompile(`(?i)\bknows?\s+nothing\s+of\b`), "does not depend on"},
	{regexp.MustCompile(`(?i)\bmade\s+again\b`), "rebuilt"},
	{regexp.MustCompile(`(?i)\bpass(es|ed)\s+over\b`), "skips, ignores"},
	{regexp.MustCompile(`(?i)\bamid\b`), "during"},
	{regexp.MustCompile(`(?i)\bcalled\s+off\b`), "cancelled"},
	{regexp.MustCompile(`(?i)\b(is|are|be|was)\s+had\b`), "exists, is available"},
	{regexp.MustCompile(`(?i)\b(is|are)\s+the\s+truth\b`), "is authoritative"},
	{regexp.MustCompile(`(?i)(^|[^<\w])believe[sd]?\b`), "trusts, uses, verifies"},
	{regexp.MustCompile(`(?i)\banother\s+life\b`), "an earlier log, another history"},
	{regexp.MustCompile(`(?i)\bwithout\s+a\s+word\b|\bleaves\s+word\b`), "silently; records"},
	{regexp.MustCompile(`(?i)\basked\s+of\b|\bis\s+asked\s+(about|once|twice|before)\b`), "is called, is applied to"},
}

// counted is a noun with a fixed plural after a number that is not the second one of "%d of %d".
var counted = habit{
	regexp.MustCompile(`(^|[^f] )%d (memories|assemblies|scopes|steps|sessions|embeddings)\b`),
	"cli.Count, which has the singular",
}

// plain has the packages whose strings are checked against spoken, and whose comments of exported declarations against
// told.
var plain = map[string]struct{ spoken, told bool }{
	".": {true, true}, "errs": {true, true}, "repair": {told: true}, "memstore": {true, true},
	"assembly": {true, true}, "working": {true, true}, "importer": {true, true},
	"vector": {true, true}, "vector/embed": {true, true}, "mcpserver": {told: true}, "memorytool": {true, true},
	"wal": {true, true}, "segment": {told: true}, "index": {told: true}, "index/table": {told: true},
	"working/redis": {true, true}, "working/workingtest": {told: true},
	"internal/settings": {spoken: true},
}

// placeholders are the names that the help of memctl may use for the value of a flag: a type or a thing.
var placeholders = strings.Fields(`bytes category duration file folder format groups id JSON key keyword
	kind mode model moment N N/T name name=text name=value position prefix scope score session store tag
	text time topic version zone`)

// TestLanguage checks the comments and strings of all packages except their tests, and all documents.
func TestLanguage(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	check := func(file string, line int, text string) {
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

// TestLanguagePlain checks the strings of memctl and of the packages of plain, and the comments of their exported
// declarations.
func TestLanguagePlain(t *testing.T) {
	proofs.OneGoroutine(t)
	places := maps.Clone(plain)
	for _, dir := range []string{"", "/internal/assemblycmd", "/internal/cli", "/internal/intake",
		"/internal/mcpcmd", "/internal/upkeep", "/internal/workingcmd"} {
		places["cmd/memctl"+dir] = struct{ spoken, told bool }{spoken: true}
	}
	for dir, what := range places {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			check := func(pos token.Pos, text string, list ...habit) {
				for _, h := range list {
					if found := h.phrase.FindString(text); found != "" {
						t.Errorf("%s: %q: better: %s", fset.Position(pos), strings.TrimSpace(found), h.instead)
					}
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				if what.spoken {
					check(lit.Pos(), text, spoken...)
				}
				if !strings.HasPrefix(path, filepath.Join("cmd", "memctl")) {
					return true
				}
				check(lit.Pos(), text, counted)
				if part := strings.Split(text, "`"); len(part) == 3 && !slices.Contains(placeholders, part[1]) {
					t.Errorf("%s: placeholder %q: better: its type, or what it is", fset.Position(lit.Pos()), part[1])
				}
				return true
			})
			for _, doc := range exportedDocs(f) {
				if what.told {
					check(doc.Pos(), strings.Join(strings.Fields(doc.Text()), " "), told...)
				}
			}
		}
	}
}

// TestLanguageOfPackages checks the comments of all packages except memctl's: doc.go, with its descriptions of formats,
// invariants and assumptions.
func TestLanguageOfPackages(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	read := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || path == "cmd" ||
			path == "bench"):
			return filepath.SkipDir
		case d.Name() != "doc.go":
			return nil
		}
		read++
		return goTexts(path, func(file string, line int, text string) {
			for _, h := range told {
				for _, at := range h.phrase.FindAllStringIndex(text, -1) {
					t.Errorf("%s:%d: %q: better: %s", file, line+strings.Count(text[:at[0]], "\n"), text[at[0]:at[1]], h.instead)
				}
			}
		})
	})
	if err != nil || read < 60 {
		t.Errorf("%d packages, %v", read, err)
	}
}

// exportedDocs returns the comments of a file's package and of its exported declarations, fields and methods.
func exportedDocs(f *ast.File) (docs []*ast.CommentGroup) {
	add := func(exported bool, groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if g != nil && exported {
				docs = append(docs, g)
			}
		}
	}
	add(true, f.Doc)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(d.Name.IsExported(), d.Doc)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					add(s.Names[0].IsExported(), d.Doc, s.Doc, s.Comment)
				case *ast.TypeSpec:
					add(s.Name.IsExported(), d.Doc, s.Doc)
					of, ok := s.Type.(*ast.StructType)
					if !ok || !s.Name.IsExported() {
						continue
					}
					for _, field := range of.Fields.List {
						add(len(field.Names) > 0 && field.Names[0].IsExported(), field.Doc, field.Comment)
					}
				}
			}
		}
	}
	return docs
}

// goTexts calls check with each group of comments and each string of a file, and the line where it begins.
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
		check(path, fset.Position(lit.Pos()).Line, lit.Value)
		return true
	})
	return nil
}
