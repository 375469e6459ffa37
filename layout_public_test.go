package varve_test

import (
	"encoding/json"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// TestPublicTypes verifies that neither the exports of the root, nor any type of another public package that they
// mention, mention a type of an internal package. A program cannot name such a type, and go doc does not show it.
func TestPublicTypes(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	root := imported(t, ".")
	p := &public{seen: map[types.Type]bool{}, bad: map[string]bool{}}
	for _, name := range root.Scope().Names() {
		if o := root.Scope().Lookup(name); o.Exported() {
			p.object(name, o)
		}
	}
	for where := range p.bad {
		t.Error(where)
	}
	if len(p.seen) < 50 {
		t.Errorf("only %d types were looked at", len(p.seen))
	}
}

// public searches the types that a program can reach.
type public struct {
	seen map[types.Type]bool
	bad  map[string]bool
}

func (p *public) object(where string, o types.Object) {
	if n, ok := o.(*types.TypeName); ok && !n.IsAlias() {
		p.named(where, n.Type().(*types.Named))
		return
	}
	p.typ(where, o.Type())
}

func (p *public) typ(where string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		p.typ(where, t.Rhs())
		for arg := range t.TypeArgs().Types() {
			p.typ(where, arg)
		}
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			p.typ(where, arg)
		}
		pkg := t.Obj().Pkg()
		switch {
		case pkg == nil || pkg.Path() != module && !strings.HasPrefix(pkg.Path(), module+"/"):
		case strings.Contains(pkg.Path(), "/internal/"):
			p.bad[fmt.Sprintf("%s mentions %s", where, t)] = true
		case t.Obj().Exported():
			p.named(pkg.Name()+"."+t.Obj().Name(), t)
		}
	case *types.Pointer:
		p.typ(where, t.Elem())
	case *types.Slice:
		p.typ(where, t.Elem())
	case *types.Array:
		p.typ(where, t.Elem())
	case *types.Chan:
		p.typ(where, t.Elem())
	case *types.Map:
		p.typ(where, t.Key())
		p.typ(where, t.Elem())
	case *types.Signature:
		for v := range t.Params().Variables() {
			p.typ(where, v.Type())
		}
		for v := range t.Results().Variables() {
			p.typ(where, v.Type())
		}
		for param := range t.TypeParams().TypeParams() {
			p.typ(where, param.Constraint())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				p.typ(where+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if m.Exported() {
				p.typ(where+"."+m.Name(), m.Type())
			}
		}
		for e := range t.EmbeddedTypes() {
			p.typ(where, e)
		}
	case *types.Union:
		for term := range t.Terms() {
			p.typ(where, term.Type())
		}
	}
}

// named checks a type once: its methods, and the types that it is composed of.
func (p *public) named(where string, n *types.Named) {
	if p.seen[n.Origin()] {
		return
	}
	p.seen[n.Origin()] = true
	p.typ(where, n.Underlying())
	for m := range n.Origin().Methods() {
		if m.Exported() {
			p.typ(where+"."+m.Name(), m.Type())
		}
	}
}

// imported returns a package as its importers see it.
func imported(t *testing.T, path string) *types.Package {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Name", path)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
	p, err := importer.ForCompiler(token.NewFileSet(), "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }).Import(module)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
