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

// vectorFolders are the folders of vector files and their mappings.
var vectorFolders = []string{".", "vector_index"}

// vectors has the vector files, and the owners of their rows.
type vectors struct {
	files []*vectorFile
	tried map[string]bool // files that were read or reported
	rows  map[key]place
	dims  map[int]int // dimensions of the documents' embeddings, with the number of documents
}

type vectorFile struct {
	Vectors
	file    *os.File
	index   *vector.Index
	claimed []bool // rows that a mapping assigns to an id, existing or not, or that an item has used
	bare    int    // documents without an embedding whose row has another dimension than the embeddings of others
}

// place is a row of a vector file.
type place struct {
	file *vectorFile
	row  int64
}

func (v *vectors) any() bool { return len(v.files) > 0 }

// looked reports whether openVectors has opened this file, or has reported that the file cannot be read.
func (v *vectors) looked(name string) bool { return v.tried[name] }

// isVectors reports whether base is the name of a vector file.
func isVectors(base string) bool {
	return base == "faiss_index" || strings.HasPrefix(base, "faiss_index") && path.Ext(base) == ".bin" ||
		path.Ext(base) == ".faiss"
}

// openVectors opens the vector files, and reports those that cannot be read.
func (r *run) openVectors(top []string) error {
	v := &r.vectors
	v.tried, v.rows, v.dims = map[string]bool{}, map[key]place{}, map[int]int{}
	for _, dir := range vectorFolders {
		names := top
		if dir != "." {
			var err error
			if names, _, err = r.list(dir); err != nil {
				continue // the folder is missing, or the walk through the folders reports the error
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

// closeVectors closes the vector files, and adds to the report how many of their vectors were imported.
func (r *run) closeVectors() {
	for _, f := range r.vectors.files {
		f.file.Close()
		r.census.vectors = append(r.census.vectors, f.Vectors)
		r.census.file(f.Path,
			fmt.Sprintf("%s of dimension %d, %s: %d equal to the embedding of the document, %d given to documents "+
				"without an embedding, %d stale, %d of another dimension, %d unusable, %d without an "+
				"owner", human.Count(int(f.Rows), "vector", "vectors"),
				f.Dimension,
				f.Index, f.Same, f.Taken, f.Stale, f.Unfit, f.Useless, f.Unclaimed))
	}
}

// placeRows determines the owner of each row of the vector files.
//
// If the number of a row is the md5 number of an id, the row belongs to that id, regardless of the mappings. Otherwise
// the mappings decide. A mapping maps ids to the numbers of vectors. Only the numbers in an ordinal mapping and in
// id_to_index.json may be positions of rows instead: they are positions if no vector has any of these numbers. If they
// may be both, the mapping is not used, and placeRows reports a Problem. If several mappings have an id, the first
// mapping counts, even if the vector file has no such row. If two ids claim a row, the row belongs to neither.
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
			if ok && (first || path.Base(m.name) == baseMapping) { // the base mapping also, below its delta
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

// numbering is the meaning of the numbers in a mapping.
type numbering int

const (
	ids  numbering = iota
	rows           // the numbers are rows of the file
	either
)

// numbering determines whether the numbers in a mapping are numbers of vectors (ids) or positions of rows (rows). The
// result is the constant either, which means undecided, if all numbers could be positions of rows and some, but not
// all, are numbers of vectors. Positions count from 0 and numbers from 1, so a wrong guess would give each id the
// vector of its neighbor.
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

// find returns the row of the vector with this number, in the vector files of the folders dirs. The bool is false if
// no vector has this number.
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

// row returns the row at the position row in the vector file that is in one of the folders dirs. ok is false if these
// folders have no vector file, or if the file has no such row. ok is also false if there are several vector files,
// because the mapping does not tell which of them it means.
func (v *vectors) row(dirs []string, row int64) (found place, ok bool) {
	for _, f := range v.files {
		if slices.Contains(dirs, path.Dir(f.Path)) {
			if ok || found.file != nil {
				return place{}, false
			}
			found, ok = place{f, row}, row >= 0 && row < f.Rows
		}
	}
	return found, ok
}

// placeOf returns the row of an item in a vector file. It looks in the mappings first, and then for the md5 of the
// item's id, because mappings get lost (FAILURES 33). The bool is false if no row belongs to the item.
func (v *vectors) placeOf(item *Item) (place, bool) {
	keys := keysOf(item.ID, item.Assembly)
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

// unclaimedMost is the maximum number of rows without an owner that are reported individually, per file.
const unclaimedMost = 1000

// unclaimed reports the rows that no mapping in use assigns to an id and that no document has used. It also reports,
// for each vector file, the number of documents whose embedding has another dimension than the file.
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
				Reason: fmt.Sprintf("vector %d, row %d: no owner: no mapping in use assigns the row to an id, and "+
					"no document uses it", f.index.ID(int64(row)), row)})
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
			reason := fmt.Sprintf("the vectors have dimension %d, but the embeddings of %s have another dimension: "+
				"the documents take precedence", f.Dimension, human.Count(n-f.bare, "document", "documents"))
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
