package page

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// memory is a page in memory that records which words are written.
type memory struct {
	words   [vfs.Words]uint64
	written []int
}

func (m *memory) Load(word int) uint64 { return m.words[word] }
func (m *memory) Close() error         { return nil }

func (m *memory) Store(word int, v uint64) {
	m.words[word] = v
	m.written = append(m.written, word)
}

func (m *memory) CompareAndSwap(word int, old, new uint64) bool {
	if m.words[word] != old {
		return false
	}
	m.Store(word, new)
	return true
}

// Each method writes the words that the package comment assigns to it: the layout is a format.
func TestLayout(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(Page)
		words []int
		value uint64 // of the last of words
	}{
		{"SetBoot", func(p Page) { p.SetBoot([2]uint64{5, 6}) }, []int{0, 1, 2}, 6},
		{"SetGeneration", func(p Page) { p.SetGeneration(7) }, []int{3}, 7},
		{"SetTail", func(p Page) { p.SetTail(8) }, []int{4}, 8},
		{"RaiseDurable", func(p Page) { p.RaiseDurable(8) }, []int{5}, 8},
		{"SetSyncing", func(p Page) { p.SetSyncing(true) }, []int{6}, 1},
		{"SetPoison", func(p Page) { p.SetPoison(Damaged) }, []int{7}, 2},
		{"RaiseFlushed", func(p Page) { p.RaiseFlushed(8) }, []int{8}, 8},
		{"RaiseSpilled", func(p Page) { p.RaiseSpilled(8) }, []int{9}, 8},
		{"SetPrepared", func(p Page) { p.SetPrepared(8) }, []int{10}, 8},
		{"SetInode", func(p Page) { p.SetInode(8) }, []int{11}, 8},
		{"SetDistrusted", func(p Page) { p.SetDistrusted(true) }, []int{12}, 1},
		{"RaiseCreating", func(p Page) { p.RaiseCreating(8) }, []int{13}, 8},
		{"SetAbandoned", func(p Page) { p.SetAbandoned(true) }, []int{14}, 1},
		{"AddIndexRebuild", func(p Page) { p.AddIndexRebuild() }, []int{15}, 1},
		{"SetHolder", func(p Page) { p.SetHolder(5, 2, time.Unix(3, 0)) }, []int{21}, 2<<32 | 3},
		{"BeginCopy", func(p Page) { p.SetTail(9); p.BeginCopy() }, []int{4, 22}, 9},
		{"RaiseSleeper", func(p Page) { p.RaiseSleeper(9) }, []int{23}, 9},
		{"SetLeader", func(p Page) { p.SetLeader(9) }, []int{24}, 9},
		{"CastAnchor", func(p Page) { p.CastAnchor(0, false, 4, 5) }, []int{26, 25}, 4 ^ 1<<63},
		{"SettleAnchor", func(p Page) { p.SettleAnchor(5) }, []int{26}, 5 | 1<<63},
		{"SetRest", func(p Page) { p.SetRest(9) }, []int{27}, 9},
		{"SwapPurger", func(p Page) { p.SwapPurger(0, NamePurger(1, 7<<32|2)) }, []int{32}, 1<<32 | 2},
		{"SetHome", func(p Page) { p.SetHome(9) }, []int{33}, 9},
		{"RaiseFiled", func(p Page) { p.RaiseFiled(9) }, []int{34}, 9},
		{"SetFlushRate", func(p Page) { p.SetFlushRate(9, 10) }, []int{35, 36}, 10},
		{"SwapTurns", func(p Page) { p.SwapTurns(0, 9) }, []int{37}, 9},
		{"SetPurgeFailed", func(p Page) { p.SetPurgeFailed(true) }, []int{38}, 1},
		{"RaiseDisplacedBelow", func(p Page) { p.RaiseDisplacedBelow(9) }, []int{39}, 9},
		{"Probe", func(p Page) { p.Probe() }, []int{40}, 1},
		{"SetPolls", func(p Page) { p.SetPolls(1, 2) }, []int{41}, 1<<8 | 2},
		{"SetSequence", func(p Page) { p.SetSequence(9) }, []int{42}, 9},
		{"AddFeatures", func(p Page) { p.AddFeatures(9) }, []int{48}, 9},
		{"Claim", func(p Page) { p.Claim(vfs.Host{PID: 3, Birth: 4}, 1) }, []int{64, 256, 50, 448}, sayer(3, 4) | 1},
		{"Clear", func(p Page) { p.Clear(true) }, cleared(), 0},
	} {
		m := &memory{}
		c.write(New(m))
		if !slices.Equal(m.written, c.words) || m.words[c.words[len(c.words)-1]] != c.value {
			t.Errorf("%s wrote %d, the last with %#x, want %d and %#x", c.name, m.written,
				m.words[m.written[len(m.written)-1]], c.words, c.value)
		}
	}
}

// cleared returns the words that a recovery in the same boot sets to 0.
func cleared() (words []int) {
	kept := []int{0, 1, 2, 5, 8, 9, 11, 16, 25, 26, 33}
	for w := range 512 {
		if !slices.Contains(kept, w) {
			words = append(words, w)
		}
	}
	return words
}

// What another process has recorded about itself in a slot does not count for the process in the slot, even if
// only the birth differs.
func TestSaidByBefore(t *testing.T) {
	m := &memory{}
	p := New(m)
	slot := p.Claim(vfs.Host{PID: 3, Birth: 4}, 1)
	if known, ok := p.Said(slot); !ok || known != 1 {
		t.Fatal(known, ok)
	}
	field := m.words[wordKnows] & (1<<saySet - 1)
	for _, by := range []vfs.Host{{PID: 3, Birth: 5}, {PID: 2, Birth: 4}, {PID: 1 << 30, Birth: 5}} {
		p.putSaid(slot, field|sayer(by.PID, by.Birth))
		if known, ok := p.Said(slot); ok {
			t.Errorf("%v says %d", by, known)
		}
	}
}

// Package wal uses no word by its number: it loads and stores words only through the methods of Page.
// Page.words is unexported, so a mapped Page gives access to nothing else.
func TestNoRawWords(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := filepath.Glob(filepath.Join(root, "wal", "*.go"))
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if strings.HasPrefix(n.Name, "word") && len(n.Name) > 4 && n.Name[4] >= 'A' && n.Name[4] <= 'Z' {
					t.Errorf("%s names a word: %s", name, n.Name)
				}
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				inner, ok := sel.X.(*ast.SelectorExpr)
				raw := []string{"Load", "Store", "CompareAndSwap", "Await", "Wake"}
				if ok && inner.Sel.Name == "shared" && slices.Contains(raw, sel.Sel.Name) {
					t.Errorf("%s accesses a word of the page: %s", name, sel.Sel.Name)
				}
			}
			return true
		})
	}
}
