package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/human"
)

// folder is one pass over a Synthians folder.
type folder struct {
	*run
	ix     *index
	files  map[string]bool // every file of the root, memories/ and assemblies/, and what the index adds
	barren map[string]bool // those that gave nothing and were reported
	// well-named files without an embedding: the dimension of the others decides whether they get one
	bare    []string
	waiting []string // files that are read when all well-named ones are
	groups  []string // files of assemblies, which come last
	history lineage  // what merge log and stats say of them
}

func (r *run) synthians() error {
	f := &folder{run: r, files: map[string]bool{}, barren: map[string]bool{}, history: newLineage()}
	top, folders, err := r.list(".")
	if err != nil {
		return err
	}
	if f.ix, err = r.readIndex(); err != nil {
		return err
	}
	defer r.closeVectors()
	if err := r.readMappings(top); err != nil {
		return err
	}
	below, err := r.tree("memories")
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(top, below) {
		f.files[name] = true
	}
	extra := f.namedElsewhere()
	var copies []string
	for _, name := range slices.Concat(top, below, extra) {
		switch ext := path.Ext(name); {
		case ext == ".json" && !derived(name):
			err = f.file(name)
		case ext == ".bak":
			copies = append(copies, name)
		case !derived(name):
			err = f.left(name, "neither a memory file nor a part of the format")
		default:
			f.spare(name)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range f.bare {
		if err := f.again(name); err != nil {
			return err
		}
	}
	for _, name := range f.waiting {
		if err := f.late(name, ""); err != nil {
			return err
		}
	}
	for _, name := range copies {
		if err := f.bak(name); err != nil {
			return err
		}
	}
	for _, name := range folders {
		if err := f.folder(name); err != nil {
			return err
		}
	}
	if err := f.assemblies(); err != nil {
		return err
	}
	if err := f.missing(); err != nil {
		return err
	}
	if err := r.ghosts(f.known); err != nil {
		return err
	}
	return r.unclaimed()
}

// derived reports whether a file can be made again from the memories.
func derived(name string) bool {
	base := path.Base(name)
	return base == indexName || slices.Contains(mappingNames, base) ||
		strings.HasPrefix(base, "faiss_index") || strings.HasSuffix(base, ".faiss")
}

// spare notes what becomes of a derived file. Mappings speak for themselves.
func (f *folder) spare(name string) {
	switch base := path.Base(name); {
	case name == indexName:
		f.census.file(name, fmt.Sprintf("read as a hint: %s, %s; the files take precedence",
			human.Count(len(f.ix.files), "memory", "memories"), human.Count(len(f.ix.groups), "assembly", "assemblies")))
	case slices.Contains(mappingNames, base) && path.Dir(name) != "memories", f.vectors.looked(name):
	default:
		f.census.file(name, "not imported: can be computed from the memories")
	}
}

func (f *folder) left(name, why string) error {
	return f.problem(Problem{Path: name, Kind: KindNotMemory, Reason: why})
}

// namedElsewhere is the files that the index names outside of the root and
// memories/. os.Root refuses what leads out of the folder.
func (f *folder) namedElsewhere() []string {
	var extra []string
	for _, name := range slices.Sorted(maps.Keys(f.ix.byPath)) {
		if f.files[name] || !fs.ValidPath(name) || path.Ext(name) != ".json" {
			continue
		}
		if dir := path.Dir(name); dir == "." || dir == "memories" || dir == "assemblies" {
			continue // listed already: it is not there
		}
		if _, err := f.root.Stat(name); err == nil {
			f.files[name] = true
			extra = append(extra, name)
		}
	}
	return extra
}

// file reads one .json at its place in the order.
func (f *folder) file(name string) error {
	doc, raw, mends, err := f.document(name)
	if doc == nil {
		f.barren[name] = true
		return err
	}
	if f.isGroup(name, doc) {
		f.groups = append(f.groups, name)
		return nil
	}
	if !f.isMemory(name, doc) {
		f.barren[name] = true
		return f.left(name, "a JSON object without content")
	}
	id, note := f.idOf(name, doc)
	if at, ok := f.place(id); !ok || at != name {
		f.waiting = append(f.waiting, name)
		return nil
	}
	if doc.bare && f.vectors.any() {
		f.bare = append(f.bare, name)
		return nil
	}
	_, err = f.take(name, id, note, doc, raw, mends)
	return err
}

// again reads a well-named memory whose turn has come.
func (f *folder) again(name string) error {
	doc, raw, mends, err := f.document(name)
	if doc == nil {
		return err
	}
	id, note := f.idOf(name, doc)
	_, err = f.take(name, id, note, doc, raw, mends)
	return err
}

func (f *folder) isMemory(name string, doc *object) bool {
	return doc.content || f.ix.byPath[name] != "" || doc.idText && doc.embedding
}

// idOf is the id inside the file. A file without one has that of the entry
// that names it, else that of its name.
func (f *folder) idOf(name string, doc *object) (id, note string) {
	switch {
	case doc.idText:
		return doc.id, ""
	case doc.id != "":
		return doc.id, "the id was a number"
	case f.ix.byPath[name] != "":
		return f.ix.byPath[name], "the id is that of the index"
	}
	stem, _, _ := strings.Cut(path.Base(name), ".json")
	return stem, "the id is that of the file name"
}

// place is the file that a memory's id leads to: the one the index names, in
// whichever way it wrote the path, or the one called after the id.
func (f *folder) place(id string) (string, bool) {
	plain := id + ".json"
	for _, p := range [...]string{f.ix.files[id], plain} {
		for _, p := range [...]string{p, nameOf(p), "memories/" + p, "memories/" + nameOf(p), path.Base(p),
			"memories/" + path.Base(p)} {
			if f.files[p] {
				return p, true
			}
		}
	}
	return "", false
}

// late reads a file that had to wait; a reason makes it a stand-in for the
// one that should be there.
func (f *folder) late(name, reason string) error {
	doc, raw, mends, err := f.document(name)
	if doc == nil {
		return err
	}
	if f.isGroup(name, doc) {
		f.groups = append(f.groups, name)
		return nil
	}
	id, note := f.idOf(name, doc)
	taken, err := f.take(name, id, cmp.Or(reason, note), doc, raw, mends)
	if err != nil || !taken {
		return err
	}
	if reason != "" {
		return f.problem(Problem{Path: name, ID: id, Kind: KindCopy, Reason: reason, Taken: true})
	}
	reason = "the name of the file does not match the id in the file; the id in the file is used"
	if says := f.ix.byPath[name]; says != "" && says != id {
		reason = fmt.Sprintf("the index names the id %q; the id in the file is used", says)
	}
	return f.problem(Problem{Path: name, ID: id, Kind: KindWrongID, Reason: reason, Taken: true})
}

// take yields the memory, and what is to be said of it.
func (f *folder) take(name, id, note string, doc *object, raw []byte, mends []string) (bool, error) {
	taken, err := f.item(Item{ID: id, JSON: doc.withID(id), Path: name, Note: note, names: doc.names}, raw)
	if err != nil || !taken {
		return taken, err
	}
	if len(mends) > 0 {
		err = f.problem(Problem{Path: name, ID: id, Kind: KindMended, Reason: strings.Join(mends, "; "), Taken: true})
	}
	if _, named := f.ix.files[id]; err == nil && f.ix.complete && !named && f.ix.byPath[name] == "" {
		err = f.problem(Problem{Path: name, ID: id, Kind: KindUnindexed,
			Reason: "no entry of " + indexName + " names the file; imported nevertheless", Taken: true})
	}
	return true, err
}

// bak reads X.bak, or X.json.bak, only where X.json gave nothing.
func (f *folder) bak(name string) error {
	of := strings.TrimSuffix(strings.TrimSuffix(name, ".bak"), ".json") + ".json"
	switch {
	case derived(of):
		return f.left(name, "a copy of what can be made again")
	case !f.files[of]:
		return f.late(name, of+" is missing, so this copy was taken")
	case f.barren[of]:
		return f.late(name, of+" cannot be read, so this copy was taken")
	}
	reason := "differs from " + of + ", which was imported"
	if same, err := f.same(name, of); err != nil {
		reason = err.Error()
	} else if same {
		reason = "duplicate copy of " + of + ", skipped"
	}
	return f.problem(Problem{Path: name, Kind: KindCopy, Reason: reason})
}

func (f *folder) same(a, b string) (bool, error) {
	one, err := f.read(a)
	if err != nil {
		return false, err
	}
	two, err := f.read(b)
	return err == nil && bytes.Equal(one, two), err
}

// folder reports a folder of the root that is not memories/.
func (f *folder) folder(name string) error {
	switch name {
	case "memories":
		return nil
	case "vector_index":
		return f.vectorFolder(name)
	case groupFolder:
		return f.listGroups()
	case "backups", "corrupted_backups", "ltm":
		return f.setAside(name)
	case "logs", "stats":
		return f.beside(name)
	}
	if strings.HasPrefix(name, ".") {
		return nil
	}
	return f.left(name, "a folder that the format does not know: nothing in it was read but what the index names")
}

func (f *folder) vectorFolder(dir string) error {
	names, err := f.tree(dir)
	for _, name := range names {
		if err != nil {
			break
		}
		if derived(name) {
			f.spare(name)
		} else {
			err = f.left(name, "no part of the format that is known")
		}
	}
	return err
}

// missing reports entries of the index without a file.
func (f *folder) missing() error {
	for _, id := range slices.Sorted(maps.Keys(f.ix.files)) {
		if _, ok := f.seen[id]; ok {
			continue
		}
		if _, ok := f.place(id); ok {
			continue // reported when it was read
		}
		reason := fmt.Sprintf("the index names %q, which does not exist", f.ix.files[id])
		if err := f.problem(Problem{Path: indexName, ID: id, Kind: KindMissing, Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

// known reports whether a file or an entry has the id, readable or not.
func (f *folder) known(id string) bool {
	if _, ok := f.seen[id]; ok {
		return true
	}
	if _, ok := f.ix.files[id]; ok {
		return true
	}
	if _, ok := f.place(id); ok {
		return true
	}
	return f.knownGroup(id)
}
