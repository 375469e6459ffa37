package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// source is what the reference takes from a file of Go: its types and its values, with their
// comments.
type source struct {
	order   []string // of structs
	structs map[string]described
	values  []value
}

type described struct {
	doc    string
	fields []field
}

type field struct{ name, json, kind, comment string }

type value struct{ name, text, comment string }

// sourceOf reads a file, named from the root of the module.
func sourceOf(t *testing.T, name string) *source {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", filepath.FromSlash(name)), nil,
		parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s := &source{structs: map[string]described{}}
	for _, d := range tree.Decls {
		general, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				v := value{name: spec.Names[0].Name, comment: flat(spec.Doc) + flat(spec.Comment)}
				if v.comment == "" && len(general.Specs) == 1 {
					v.comment = flat(general.Doc)
				}
				if len(spec.Values) > 0 {
					if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
						v.text, _ = strconv.Unquote(lit.Value)
					}
				}
				s.values = append(s.values, v)
			case *ast.TypeSpec:
				if of, ok := spec.Type.(*ast.StructType); ok && spec.Name.IsExported() {
					doc := flat(spec.Doc)
					if doc == "" {
						doc = flat(general.Doc)
					}
					s.order = append(s.order, spec.Name.Name)
					s.structs[spec.Name.Name] = described{doc, fieldsOf(of)}
				}
			}
		}
	}
	return s
}

func fieldsOf(of *ast.StructType) (list []field) {
	for _, f := range of.Fields.List {
		tag := ""
		if f.Tag != nil {
			text, _ := strconv.Unquote(f.Tag.Value)
			tag, _, _ = strings.Cut(reflect.StructTag(text).Get("json"), ",")
		}
		for _, name := range f.Names {
			if name.IsExported() {
				list = append(list, field{name.Name, tag, kindOf(f.Type), flat(f.Doc) + flat(f.Comment)})
			}
		}
	}
	return list
}

// kindOf is a type as it is written.
func kindOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return kindOf(e.X) + "." + e.Sel.Name
	case *ast.StarExpr:
		return "*" + kindOf(e.X)
	case *ast.ArrayType:
		return "[]" + kindOf(e.Elt)
	}
	return "?"
}

// flat is a comment in one line.
func flat(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// sentinels are the errors that a caller tests for, by the names that package varve gives them, as they
// reach memctl.
var sentinels = map[string]error{
	"ErrNotFound": varve.ErrNotFound, "ErrConflict": varve.ErrConflict,
	"ErrDimension": &varve.FieldError{Err: varve.ErrDimension}, "ErrClosed": varve.ErrClosed,
	"ErrReadOnly": varve.ErrReadOnly, "ErrDiskFull": varve.ErrDiskFull, "ErrPermission": varve.ErrPermission,
	"ErrLocked":   varve.ErrLocked,
	"ErrTooLarge": varve.ErrTooLarge, "ErrBatchTooLarge": varve.ErrBatchTooLarge, "ErrInvalid": varve.ErrInvalid,
	"ErrNoStore":     varve.ErrNoStore,
	"ErrNewerFormat": varve.ErrNewerFormat, "ErrSyncFailed": varve.ErrSyncFailed,
	"ErrTooManyFiles":   fmt.Errorf("%w: %w", varve.ErrTooManyFiles, syscall.EMFILE),
	"ErrOutcomeUnknown": varve.ErrOutcomeUnknown, "ErrTruncated": varve.ErrTruncated,
	"ErrCopyBehind": &varve.CopyBehindError{}, "ErrHistoryGone": &varve.HistoryGoneError{}, "ErrLimit": varve.ErrLimit,
	"ErrRedacted": varve.ErrRedacted, "ErrPurged": varve.ErrPurged,
	"ErrSession": varve.ErrSession,
	"ErrCorrupt": varve.ErrCorrupt, "ErrModel": varve.ErrModel, "ErrMoved": varve.ErrMoved,
	"ErrReplaced": varve.ErrReplaced, "ErrEmbedderDown": varve.ErrEmbedderDown, "ErrSkip": varve.ErrSkip,
}

func errorsReference(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Errors\n\n" + made + `
Package varve exports these, and package errs defines them. A sentinel is tested with ` + "`errors.Is`" + `; a
type is extracted with ` + "`errors.As`" + ` and has the details. The exit status is that of memctl, see
[exit-codes.md](exit-codes.md).

| sentinel | exit status | when |
|---|---|---|
`)
	known := map[string]string{}
	for _, name := range []string{"errs/errs.go", "errs/model.go"} {
		for _, v := range sourceOf(t, name).values {
			known[v.name] = strings.TrimSpace(strings.TrimPrefix(v.comment, v.name+":"))
		}
	}
	for _, v := range sourceOf(t, "errors.go").values {
		err := sentinels[v.name]
		if err == nil {
			t.Fatalf("errors.go has %s: add it to sentinels", v.name)
		}
		about, status := known[v.name], fmt.Sprint(cli.Classify(err).Code)
		if about == "" {
			about = v.comment
		}
		if v.name == "ErrSkip" {
			status = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", inCode(v.name), status, cell(sentence(about)))
	}
	for _, name := range []string{"errs/errs.go", "errs/conflict.go", "errs/version.go", "errs/members.go",
		"errs/model.go", "errs/remedy.go"} {
		s := sourceOf(t, name)
		for _, kind := range s.order {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", kind, wrapped(markdown(s.structs[kind].doc)))
			if len(s.structs[kind].fields) > 0 {
				b.WriteString("\n| field | type | |\n|---|---|---|\n")
			}
			for _, f := range s.structs[kind].fields {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", inCode(f.name), inCode(f.kind), cell(f.comment))
			}
		}
	}
	return b.String()
}

// sentence begins with a capital letter, unless with the name of a file, and ends with a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	if first, _, _ := strings.Cut(s, " "); !strings.Contains(first, ".") {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return strings.TrimSuffix(s, ".") + "."
}

// wrapped breaks a text at 100 columns.
func wrapped(s string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(s) {
		switch n := len([]rune(word)); {
		case column == 0:
			column = n
		case column+1+n > 100:
			b.WriteByte('\n')
			column = n
		default:
			b.WriteByte(' ')
			column += 1 + n
		}
		b.WriteString(word)
	}
	return b.String()
}

func eventsReference(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Events\n\n" + made + `
` + "`Options.Listener`" + ` is called for each event, on the goroutine where it occurs and with locks held: it
must neither block nor call the store. memctl prints those that concern its user as notes on stderr.

| field | type | |
|---|---|---|
`)
	public := sourceOf(t, "event.go")
	for _, f := range public.structs["Event"].fields {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", inCode(f.name), inCode(f.kind), cell(f.comment))
	}
	b.WriteString("\nThe text of a kind is its value; a program may compare it.\n\n| kind | text | |\n|---|---|---|\n")
	texts := map[string]string{}
	for _, v := range sourceOf(t, "internal/env/event.go").values {
		texts[v.name] = v.text
	}
	for _, v := range public.values {
		if texts[v.name] == "" {
			t.Fatalf("internal/env/event.go has no %s", v.name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", inCode(v.name), texts[v.name], cell(sentence(v.comment)))
	}
	return b.String()
}
