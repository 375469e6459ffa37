package importer

import (
	"crypto/md5"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"path"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/vector"
)

// ordinalMapping is the name of the mapping that maps ids to rows of the vector file. The other mappings map ids to the
// numbers that the vectors have in the file.
const ordinalMapping = "id_to_index_mapping.json"

// mappingNames are the names of the files that map ids to vectors. If several of them have an id, the first one counts.
// The last two are those of a Varve store, the newer one first.
var mappingNames = []string{"faiss_index.bin.mapping.json", ordinalMapping, "id_to_index.json", deltaMapping,
	baseMapping}

const (
	baseMapping  = "mapping.json"
	deltaMapping = "mapping.delta.json"
)

// assemblyPrefix marks an assembly in the mappings of other systems.
const assemblyPrefix = "asm:"

// key is the document to which a vector belongs.
type key struct {
	kind vector.Kind
	id   string
}

// String returns the key in the form that the mappings of other systems use.
func (k key) String() string {
	if k.kind == vector.Assemblies {
		return assemblyPrefix + k.id
	}
	return k.id
}

// keysOf returns the keys that an item may have in a mapping, the most likely first. id is the id of the item, and
// group is true for an assembly. There may be several keys, because not every system put the prefix asm: before the
// ids of assemblies, and some ids begin with this prefix.
func keysOf(id string, group bool) []key {
	bare := strings.TrimPrefix(id, assemblyPrefix)
	switch {
	case group && bare != id:
		return []key{{vector.Assemblies, id}, {vector.Assemblies, bare}, {vector.Memories, id}}
	case group:
		return []key{{vector.Assemblies, id}, {vector.Memories, id}}
	case bare != id:
		return []key{{vector.Memories, id}, {vector.Assemblies, bare}}
	}
	return []key{{vector.Memories, id}}
}

// md5Number returns the number that the older systems gave to the vector of an id.
func md5Number(k key) int64 {
	sum := md5.Sum([]byte(k.String()))
	n := new(big.Int).SetBytes(sum[:])
	return n.Mod(n, big.NewInt(math.MaxInt64)).Int64()
}

// mapping is the content of a mapping file.
type mapping struct {
	name  string
	pairs []pair
	err   error // the error because of which the rest of the file could not be read
}

type pair struct {
	key
	number int64
	err    error // the value is not a number
}

// readMappings reads the mappings, and determines the number and the row of the vector of each id. Faults of a mapping
// are reported later (see ghosts), when the existing ids are known.
func (r *run) readMappings(top []string) error {
	if err := r.openVectors(top); err != nil {
		return err
	}
	for _, name := range r.mappings(top) {
		m := mapping{name: name}
		m.err = r.readMapping(&m)
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		r.mapped = append(r.mapped, m)
	}
	if err := r.number(); err != nil {
		return err
	}
	return r.placeRows()
}

func (r *run) readMapping(m *mapping) error {
	file, err := r.open(m.name)
	if err != nil {
		return err
	}
	defer file.Close()
	return vector.ReadMapping(newFiniteReader(file), func(kind vector.Kind, id string, n int64, err error) error {
		m.pairs = append(m.pairs, pair{key{kind, id}, n, err})
		return r.ctx.Err()
	})
}

// number collects the numbers of the vectors, so that the imported vectors keep their numbers. If two vectors have the
// same number (FAILURES 34), neither keeps the number, because its owner is unknown.
func (r *run) number() error {
	r.numbers = map[key]int64{}
	owner := map[int64]key{}
	contested := map[int64]bool{}
	for _, m := range r.mapped {
		kept := 0
		for _, p := range m.pairs {
			if _, ok := r.numbers[p.key]; ok || p.err != nil || p.number <= 0 {
				continue
			}
			if other, ok := owner[p.number]; ok {
				contested[p.number] = true
				err := r.problem(Problem{Path: m.name, ID: p.String(), Kind: KindNumber, Taken: true,
					Reason: fmt.Sprintf("vector number %d is also mapped to %q; both vectors get new numbers",
						p.number, other)})
				if err != nil {
					return err
				}
				continue
			}
			owner[p.number], r.numbers[p.key] = p.key, p.number
			kept++
		}
		r.census.file(m.name, fmt.Sprintf("%s of vectors; %d are kept if their memory or assembly exists",
			human.Count(len(m.pairs), "number", "numbers"), kept))
	}
	for k, n := range r.numbers {
		if contested[n] {
			delete(r.numbers, k)
		}
	}
	return nil
}

// numberOf returns the number of an item's vector, or 0 if no mapping has the item.
func (r *run) numberOf(item *Item) int64 {
	for _, k := range keysOf(item.ID, item.Assembly) {
		if n, ok := r.numbers[k]; ok {
			return n
		}
	}
	return 0
}

// ghosts reports ids in the mappings that have neither a file nor an entry in the index, and the faults of the
// mappings. The function known reports whether an id has a file or an entry.
func (r *run) ghosts(known func(id string) bool) error {
	for _, m := range r.mapped {
		for _, p := range m.pairs {
			is := known(p.String())
			problem := Problem{Path: m.name, ID: p.String(), Kind: KindGhost,
				Reason: fmt.Sprintf("mapped to vector %d, but the id has no file and no entry in the index", p.number)}
			var field *errs.FieldError
			switch {
			case errors.As(p.err, &field) && is:
				problem.Kind, problem.Taken = KindNumber, true
				problem.Reason = fmt.Sprintf("mapped to %s, which is not a 64-bit integer; the vector gets a new number",
					field.Value)
			case errors.As(p.err, &field):
				problem.Reason = fmt.Sprintf("mapped to %s, which is not a 64-bit integer, and the id has no file and no "+
					"entry in the index", field.Value)
			// In a delta, 0 means that the vector was removed.
			case is || p.number == 0 && path.Base(m.name) == deltaMapping:
				continue
			}
			if err := r.problem(problem); err != nil {
				return err
			}
		}
		if m.err != nil {
			err := r.problem(Problem{Path: m.name, Kind: KindIndex,
				Reason: fmt.Sprintf("%v; read before the fault: %s; the embeddings in the documents are not affected",
					clip(m.err),
					human.Count(len(m.pairs), "member", "members"))})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// mappings returns the paths of the existing mappings; top has the names of the files in the root folder.
func (r *run) mappings(top []string) []string {
	var all []string
	for _, dir := range vectorFolders {
		for _, name := range mappingNames {
			if dir == "." && !slices.Contains(top, name) {
				continue
			}
			if _, err := r.root.Stat(path.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
				all = append(all, path.Join(dir, name))
			}
		}
	}
	return all
}

// nameOf returns an id in the form in which old versions wrote it in a file name.
func nameOf(id string) string { return strings.ReplaceAll(id, ":", "-") }
