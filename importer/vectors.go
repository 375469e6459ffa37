package importer

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/vector"
)

// vectorFolders are where vector files and their mappings are.
var vectorFolders = []string{".", "vector_index"}

// vectors are the vector files, and whose their rows are.
type vectors struct {
	files []*vectorFile
	tried map[string]bool // those that were read, or reported
	rows  map[key]place
	dims  map[int]int // dimensions of the documents' embeddings, and how many have these
}

type vectorFile struct {
	Vectors
	file    *os.File
	index   *vector.Index
	claimed []bool // rows that a mapping gives to somebody, known or not, or that somebody has taken
	bare    int    // documents without an embedding whose row is of another dimension than the others' embeddings
}

// place is a row.
type place struct {
	file *vectorFile
	row  int64
}

func (v *vectors) any() bool { return len(v.files) > 0 }

// looked reports whether something is or will be said of a file.
func (v *vectors) looked(name string) bool { return v.tried[name] }

// isVectors knows a vector file by its name.
func isVectors(base string) bool {
	return base == "faiss_index" || strings.HasPrefix(base, "faiss_index") && path.Ext(base) == ".bin" ||
		path.Ext(base) == ".faiss"
}

// openVectors opens those that can be read, and reports the others.
func (r *run) openVectors(top []string) error {
	v := &r.vectors
	v.tried, v.rows, v.dims = map[string]bool{}, map[key]place{}, map[int]int{}
	for _, dir := range vectorFolders {
		names := top
		if dir != "." {
			var err error
			if names, _, err = r.list(dir); err != nil {
				continue // it is not there, or reported by who goes through the folders
			}
		}
		for _, name := range names {
			if !isVectors(path.Base(name)) {
				continue
			}
			v.tried[name] = true
			f, err := r.openIndex(name)
			if err != nil {
				err = r.problem(Problem{Path: name, Kind: KindVectors,
					Reason: fmt.Sprintf("%v; no vector of the file was imported; the embeddings in the documents are not affected",
						err)})
				if err != nil {
					return err
				}
				continue
			}
			v.files = append(v.files, f)
		}
	}
	return nil
}

func (r *run) openIndex(name string) (*vectorFile, error) {
	f, err := r.open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	var x *vector.Index
	if err == nil {
		x, err = vector.ReadIndex(name, f, info.Size())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	of := Vectors{Path: name, Index: "IndexFlat" + strings.ToUpper(x.Metric().String()), Dimension: x.Dim(), Rows: x.Len()}
	return &vectorFile{Vectors: of, file: f, index: x, claimed: make([]bool, x.Len())}, nil
}

// closeVectors lets go of the files, and says what became of them.
func (r *run) closeVectors() {
	for _, f := range r.vectors.files {
		f.file.Close()
		r.census.vectors = append(r.census.vectors, f.Vectors)
		r.census.file(f.Path,
			fmt.Sprintf("%s of dimension %d, %s: %d as the documents have them, %d given to documents that had none, %d "+
				"stale, %d of another dimension, %d unusable, %d without an owner", human.Count(int(f.Rows), "vector", "vectors"),
				f.Dimension,
				f.Index, f.Same, f.Taken, f.Stale, f.Unfit, f.Useless, f.Unclaimed))
	}
}

// placeRows finds out whose the rows are.
//
// A row whose number is the md5 of an id is that id's, whatever else is said of it.
// The numbers of a mapping are those of the file; but where none of them is one, an
// ordinal mapping gives rows, and so does id_to_index.json, of which both exist; where they could
// be either, that mapping leads to none. The first mapping that names an id counts, also where the
// file has no such row. A row that two ids claim belongs to neither.
func (r *run) placeRows() error {
	v := &r.vectors
	if !v.any() {
		return nil
	}
	owner := map[place]key{} // by md5
	for _, m := range r.mapped {
		for _, p := range m.pairs {
			if at, ok := v.find(vectorFolders, md5Number(p.key)); ok {
				owner[at] = p.key
			}
		}
	}
	named, claims := map[key]bool{}, map[place]key{}
	contested := map[place]bool{}
	for _, m := range r.mapped {
		dirs := []string{path.Dir(m.name)}
		are := v.numbering(m, dirs)
		if are == either {
			err := r.problem(Problem{Path: m.name, Kind: KindVectors, Taken: true,
				Reason: "the numbers may be rows of the vector file or the numbers of its vectors, and the two readings differ: " +
					"the mapping was not used for vectors; the embeddings in the documents are not affected"})
			if err != nil {
				return err
			}
		}
		for _, p := range m.pairs {
			if p.err != nil {
				continue
			}
			at, ok := place{}, false
			switch are {
			case ids:
				at, ok = v.find(dirs, p.number)
			case rows:
				at, ok = v.row(dirs, p.number)
			}
			first := !named[p.key]
			named[p.key] = true
			if ok && (first || path.Base(m.name) == baseMapping) { // over which the delta lies
				at.file.claimed[at.row] = true
			}
			if !first || !ok {
				continue
			}
			if other, ok := owner[at]; ok && other != p.key {
				continue
			}
			if other, ok := claims[at]; ok && other != p.key {
				contested[at] = true
			}
			claims[at], v.rows[p.key] = p.key, at
		}
	}
	for k, at := range v.rows {
		if contested[at] && owner[at] != k {
			delete(v.rows, k)
		}
	}
	return nil
}

// numbering is what the numbers of a mapping are.
type numbering int

const (
	ids  numbering = iota
	rows           // of the file
	either
)

// numbering finds out. Numbers that could all be rows and of which some are ids, but not all, are
// either: a reader that counts rows from 0 and ids from 1 would take the neighbour's.
func (v *vectors) numbering(m mapping, dirs []string) numbering {
	if base := path.Base(m.name); base != ordinalMapping && base != "id_to_index.json" {
		return ids
	}
	named, inRange, all := 0, 0, 0
	for _, p := range m.pairs {
		if p.err != nil {
			continue
		}
		all++
		if _, ok := v.find(dirs, p.number); ok {
			named++
		}
		if _, ok := v.row(dirs, p.number); ok {
			inRange++
		}
	}
	switch {
	case named == 0:
		return rows
	case named < all && inRange == all:
		return either
	}
	return ids
}

// find looks for a number in the files of some folders.
func (v *vectors) find(dirs []string, number int64) (place, bool) {
	for _, f := range v.files {
		if slices.Contains(dirs, path.Dir(f.Path)) {
			if row := f.index.RowOf(number); row >= 0 {
				return place{f, row}, true
			}
		}
	}
	return place{}, false
}

// row is a row of the only file of a folder: of several it is unknown which is meant.
func (v *vectors) row(dirs []string, row int64) (at place, ok bool) {
	for _, f := range v.files {
		if slices.Contains(dirs, path.Dir(f.Path)) {
			if ok || at.file != nil {
				return place{}, false
			}
			at, ok = place{f, row}, row >= 0 && row < f.Rows
		}
	}
	return at, ok
}

// placeOf is the row of an item: by a mapping, else by the md5 of its id, for
// mappings get lost (FAILURES 33).
func (v *vectors) placeOf(it *Item) (place, bool) {
	keys := keysOf(it.ID, it.Assembly)
	for _, k := range keys {
		if at, ok := v.rows[k]; ok {
			return at, true
		}
	}
	for _, k := range keys {
		if at, ok := v.find(vectorFolders, md5Number(k)); ok {
			return at, true
		}
	}
	return place{}, false
}

// unclaimedMost is of how many rows of a file each is told by itself.
const unclaimedMost = 1000

// unclaimed reports the rows that nobody has, neither by the mapping that counts nor
// by the md5 of an id that is there; and files of another dimension.
func (r *run) unclaimed() error {
	for _, f := range r.vectors.files {
		for row, claimed := range f.claimed {
			if claimed {
				continue
			}
			if f.Unclaimed++; f.Unclaimed > unclaimedMost {
				continue
			}
			err := r.problem(Problem{Path: f.Path, Kind: KindGhost,
				Reason: fmt.Sprintf("vector %d, row %d: belongs to no id, neither by the mappings nor by the existing ids",
					f.index.ID(int64(row)), row)})
			if err != nil {
				return err
			}
		}
		if n := f.Unclaimed - unclaimedMost; n > 0 {
			if err := r.problem(Problem{Path: f.Path, Kind: KindGhost,
				Reason: fmt.Sprintf("and %s without an owner", human.Count(n, "more vector", "more vectors"))}); err != nil {
				return err
			}
		}
		if n := f.Unfit; n > 0 {
			reason := fmt.Sprintf("the vectors have dimension %d, but the embeddings of %s another: the documents take "+
				"precedence", f.Dimension, human.Count(n-f.bare, "document", "documents"))
			if f.bare > 0 {
				reason += fmt.Sprintf("; %s without an embedding got no vector, because no document has an embedding of "+
					"dimension %d", human.Count(f.bare, "document", "documents"), f.Dimension)
			}
			if err := r.problem(Problem{Path: f.Path, Kind: KindVectors, Reason: reason, Taken: true}); err != nil {
				return err
			}
		}
	}
	return nil
}
