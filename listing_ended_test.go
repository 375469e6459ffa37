package varve_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/working"
)

// listings are the exported functions that return an iterator, by name, with the filters and orders that take other
// paths through the engine. Each must yield ten values of the store of TestListingEnds, except those marked as fewer.
var listings = map[string]struct {
	fewer bool
	all   func(ctx context.Context, st *walked) iter.Seq2[any, error]
}{
	"Store.Memories":                      {all: memories()},
	"Store.Memories by category":          {all: memories(varve.InCategory("even"))},
	"Store.Memories by session":           {all: memories(varve.InSession("s"))},
	"Store.Memories by tag":               {all: memories(varve.WithTag("t"))},
	"Store.Memories by size":              {all: memories(sorted("-size"))},
	"Store.Memories by time":              {all: memories(sorted("timestamp"))},
	"Store.Memories by time and category": {all: memories(sorted("timestamp"), varve.InCategory("even"))},
	"Store.History": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.History(ctx, "m000"))
	}},
	"Store.Log": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Log(ctx, varve.LogOptions{}))
	}},
	"Store.Watch": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Watch(ctx, 0))
	}},
	"Admin.Changes": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Admin().Changes(ctx, 0))
	}},
	"Admin.Lines":         {all: lines()},
	"Admin.Lines by size": {all: lines(sorted("size"))},
	"Admin.RefusedEdits": {fewer: true, all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Admin().RefusedEdits(ctx))
	}},
	"Admin.Verify": {fewer: true, all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Admin().Verify(ctx, varve.VerifyOptions{}))
	}},
	"Assemblies.All": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Assemblies().All(ctx))
	}},
	"Assemblies.Containing": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Assemblies().Containing(ctx, "m000"))
	}},
	"Assemblies.History": {fewer: true, all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Assemblies().History(ctx, "a00"))
	}},
	"Assemblies.Lines": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Assemblies().Lines(ctx))
	}},
	"Sessions.All": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Sessions().All(ctx))
	}},
	"Quarantine.All": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Admin().Quarantine().All(ctx))
	}},
	"VerifyFolder": {fewer: true, all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(varve.VerifyFolder(ctx, st.dir, nil, varve.VerifyOptions{}))
	}},
	"Tx.List": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return func(yield func(any, error) bool) {
			begun := false
			err := st.Transact(ctx, func(tx *varve.Tx) error {
				begun = true
				for m, err := range tx.List() {
					if !yield(m, err) {
						return nil
					}
				}
				return nil
			})
			if !begun {
				yield(nil, err)
			}
		}
	}},
	"Notes.List": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Notes().List(ctx, "", 0))
	}},
	"Notes.LeftOut": {fewer: true, all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Notes().LeftOut(ctx))
	}},
	"Notes.ListAfter": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Notes().ListAfter(ctx, "", 0, ""))
	}},
	"NoteLog.Next": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Notes().Log().Next(ctx))
	}},
	"Notes.Glob": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Notes().Glob(ctx, "*/*.md"))
	}},
	"Notes.Grep": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Notes().Grep(ctx, "", regexp.MustCompile("line")))
	}},
	"Notes.History": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Notes().History(ctx, "folder/00.md"))
	}},
	"Home.Scopes": {all: func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Working().Home().Scopes(ctx))
	}},
}

func anything[T any](seq iter.Seq2[T, error]) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for v, err := range seq {
			if !yield(v, err) {
				return
			}
		}
	}
}

func memories(filters ...varve.Filter) func(context.Context, *walked) iter.Seq2[any, error] {
	return func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Memories(ctx, filters...))
	}
}

func lines(filters ...varve.Filter) func(context.Context, *walked) iter.Seq2[any, error] {
	return func(ctx context.Context, st *walked) iter.Seq2[any, error] {
		return anything(st.Admin().Lines(ctx, filters...))
	}
}

func sorted(key string) varve.Filter {
	o, err := memstore.ParseOrder(key, "")
	if err != nil {
		panic(err)
	}
	return varve.Sorted(o)
}

// walked is a store with at least twenty of everything.
type walked struct {
	*varve.Store
	dir string
}

func newWalked(t *testing.T) *walked {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	for i := range 60 {
		m := varve.Memory{ID: fmt.Sprintf("m%03d", i), Content: "one",
			Metadata: map[string]any{"category": "even", "tags": []any{"t"}}}
		m.Metadata["session_id"] = "s"
		if i >= 30 {
			m.Metadata["session_id"] = fmt.Sprint("s", i)
		}
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Put(ctx, varve.Memory{ID: "m000", Content: fmt.Sprint(i), Metadata: m.Metadata}); err != nil {
			t.Fatal(err)
		}
		if i == 30 { // half of the listing comes from the index, half from the log
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 20 {
		piece := filepath.Join(dir, "quarantine", fmt.Sprint("piece", i))
		if err := os.WriteFile(piece, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{fmt.Sprintf("folder/%02d.md", i), "folder/00.md"} {
			if _, err := st.Notes().Write(ctx, path, fmt.Appendf(nil, "line %d\n", i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := st.Assemblies().Put(ctx,
			varve.Assembly{ID: fmt.Sprintf("a%02d", i), Name: "a", MemoryIDs: []string{"m000"}}); err != nil {
			t.Fatal(err)
		}
		w, err := st.Working().Open(ctx, working.Scope{Session: fmt.Sprint("s", i)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Set(ctx, "plan", "x"); err != nil {
			t.Fatal(err)
		}
	}
	return &walked{st, dir}
}

// TestListingEnds verifies that if the context of a listing ends, its error is the last value, and nothing follows: a
// loop that ends without an error has seen everything.
func TestListingEnds(t *testing.T) {
	t.Parallel()
	st := newWalked(t)
	for name, l := range listings {
		for _, after := range []int{0, 1, 9} {
			if after > 0 && l.fewer {
				continue
			}
			ctx, cancel := context.WithCancel(t.Context())
			if after == 0 {
				cancel()
			}
			n, last := 0, error(nil)
			for _, err := range l.all(ctx, st) {
				if last != nil {
					t.Errorf("%s, ended after %d values: another value after %v", name, after, last)
				}
				switch {
				case errors.Is(err, context.Canceled):
					last = err
				case err != nil:
					t.Errorf("%s, ended after %d values: %v", name, after, err)
				default:
					n++
				}
				if n == after {
					cancel()
				}
			}
			cancel()
			if last == nil || n != after {
				t.Errorf("%s, ended after %d values: %d values and the error %v", name, after, n, last)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, filter := range []varve.Filter{varve.InCategory("even"), varve.InSession("s"), varve.WithPrefix("m"),
		varve.After("m")} {
		if n, err := st.Count(ctx, filter); !errors.Is(err, context.Canceled) {
			t.Errorf("Count returns %d and %v", n, err)
		}
	}
}

// TestListingsNamed verifies that every exported function of the module's root that returns an iterator is in listings.
func TestListingsNamed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Type.Results == nil || len(f.Type.Results.List) != 1 {
				continue
			}
			of, ok := f.Type.Results.List[0].Type.(*ast.IndexListExpr)
			if !ok || of.X.(*ast.SelectorExpr).Sel.Name != "Seq2" {
				continue
			}
			name := f.Name.Name
			if f.Recv != nil {
				typ := f.Recv.List[0].Type
				if star, ok := typ.(*ast.StarExpr); ok {
					typ = star.X
				}
				name = typ.(*ast.Ident).Name + "." + name
			}
			if _, ok := listings[name]; !ok {
				t.Errorf("listings does not have %s", name)
			}
			found++
		}
	}
	if found < 12 {
		t.Errorf("only %d iterators were found", found)
	}
}

// TestOrderServesAgain verifies that a second listing with an order yields the same as the first, and that Place
// returns the position of the newest listing, however far an earlier one was read.
func TestOrderServesAgain(t *testing.T) {
	t.Parallel()
	st := newWalked(t)
	for _, key := range memstore.OrderNames() {
		o, err := memstore.ParseOrder("-"+key, "")
		if err != nil {
			t.Fatal(err)
		}
		o.Skip = 5
		filter := varve.Sorted(o)
		read := func(all iter.Seq2[any, error], most int) (n int) {
			for _, err := range all {
				if err != nil {
					t.Fatal(err)
				}
				if n++; n == most {
					break
				}
			}
			return n
		}
		for _, all := range []iter.Seq2[any, error]{memories(filter)(t.Context(), st), lines(filter)(t.Context(), st),
			memories(filter, varve.WithTag("t"))(t.Context(), st)} {
			for range 2 {
				if n := read(all, 3); n != 3 || o.Place() == "" {
					t.Fatalf("%s: %d values, at %q", key, n, o.Place())
				}
				place := o.Place()
				if n, err := st.Count(t.Context(), filter); err != nil || n != 60 || o.Place() != place {
					t.Errorf("%s: %d memories: %v; a count moved the listing from %q to %q", key, n, err, place, o.Place())
				}
				from, err := memstore.ParseOrder("-"+key, o.Place())
				if err != nil {
					t.Fatal(err)
				}
				if n := read(memories(varve.Sorted(from))(t.Context(), st), 0); n != 60-5-3 {
					t.Errorf("%s: %d values behind the place", key, n)
				}
				if n := read(all, 0); n != 60-5 {
					t.Errorf("%s: %d values, want %d", key, n, 60-5)
				}
			}
		}
	}
}
