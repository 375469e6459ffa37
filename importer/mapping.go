package importer

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// mappingNames are the files that map an id to its number in the vector file.
// The vectors are in the memories themselves; what matters here are ids that
// are nowhere else: somebody may miss them.
var mappingNames = []string{"faiss_index.bin.mapping.json", "id_to_index_mapping.json", "id_to_index.json", "mapping.json"}

// readNumbers notes which number the vector of an id has, so that it can keep it.
// The first mapping that names an id counts. Two vectors with one number (FAILURES
// 34) both lose it: nobody knows whose it is. What cannot be read is reported by
// ghosts.
func (r *run) readNumbers(top []string) error {
	r.numbers = map[string]int64{}
	owner := map[int64]string{}
	contested := map[int64]bool{}
	for _, name := range r.mappings(top) {
		all, kept := 0, 0
		err := r.eachNumber(name, func(id, number string) error {
			all++
			// Never through float64: half of these numbers are beyond 2^53.
			n, err := strconv.ParseInt(number, 10, 64)
			if _, ok := r.numbers[id]; ok || err != nil || n <= 0 {
				return nil
			}
			if other, ok := owner[n]; ok {
				contested[n] = true
				return r.problem(Problem{Path: name, ID: id, Kind: KindNumber, Taken: true,
					Reason: fmt.Sprintf("vector %d is mapped to %q, too; both get a number of their own", n, other)})
			}
			owner[n], r.numbers[id] = id, n
			kept++
			return nil
		})
		if errors.Is(err, errStop) || r.ctx.Err() != nil {
			return err
		}
		r.census.file(name, fmt.Sprintf("%d numbers of vectors, %d of them to be kept where the memory or assembly is there", all, kept))
	}
	for id, n := range r.numbers {
		if contested[n] {
			delete(r.numbers, id)
		}
	}
	return nil
}

// number is that of the item's vector.
func (r *run) number(it *Item) int64 {
	if it.Assembly {
		if n, ok := r.numbers["asm:"+it.ID]; ok {
			return n
		}
	}
	return r.numbers[it.ID]
}

// ghosts reports the ids of the mappings that neither a file nor an entry has.
func (r *run) ghosts(known func(id string) bool, top []string) error {
	for _, name := range r.mappings(top) {
		err := r.eachNumber(name, func(id, number string) error {
			if known(id) {
				return nil
			}
			reason := fmt.Sprintf("vector %s belongs to it, but no file and no entry", number)
			if _, err := strconv.ParseInt(number, 10, 64); err != nil {
				reason = fmt.Sprintf("mapped to %s, which is no 64-bit integer, and there is no file and no entry", number)
			}
			return r.problem(Problem{Path: name, ID: id, Kind: KindGhost, Reason: reason})
		})
		if errors.Is(err, errStop) || r.ctx.Err() != nil {
			return err
		}
		if err != nil {
			err = r.problem(Problem{Path: name, Kind: KindIndex,
				Reason: fmt.Sprintf("%v; nothing is lost by it, the vectors are in the memories", clip(err))})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mappings gives the mappings that are there; top are the files of the root.
func (r *run) mappings(top []string) []string {
	var all []string
	for _, dir := range []string{"", "vector_index/"} {
		for _, name := range mappingNames {
			if dir == "" && !slices.Contains(top, name) {
				continue
			}
			if _, err := r.root.Stat(dir + name); !errors.Is(err, fs.ErrNotExist) {
				all = append(all, dir+name)
			}
		}
	}
	return all
}

// eachNumber walks through the numbers of a mapping as they are written.
func (r *run) eachNumber(name string, one func(id, number string) error) error {
	file, err := r.root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	dec := jsontext.NewDecoder(newFiniteReader(file), lax...)
	return eachMember(dec, func(id string) error {
		if dec.PeekKind() != '0' {
			return dec.SkipValue()
		}
		val, err := dec.ReadValue()
		if err != nil {
			return err
		}
		return one(id, string(val))
	})
}

// nameOf is the id as old versions wrote it into a file name.
func nameOf(id string) string { return strings.ReplaceAll(id, ":", "-") }
