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

	"github.com/go-json-experiment/json/jsontext"
)

// folder is one pass over a Synthians folder.
type folder struct {
	*run
	ix      *index
	files   map[string]bool // every file of the root, memories/ and assemblies/, and what the index adds
	barren  map[string]bool // those that gave nothing and were reported
	asm     map[string]bool // assembly ids met
	waiting []string        // files that are read when all well-named ones are
}

func (r *run) synthians() error {
	f := &folder{run: r, files: map[string]bool{}, barren: map[string]bool{}, asm: map[string]bool{}}
	top, folders, err := r.list(".")
	if err != nil {
		return err
	}
	if f.ix, err = r.readIndex(); err != nil {
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
		}
		if err != nil {
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
	if err := f.missing(); err != nil {
		return err
	}
	return r.ghosts(f.known, f.files)
}

// derived says that a file can be made again from the memories.
func derived(name string) bool {
	base := path.Base(name)
	return base == indexName || slices.Contains(mappingNames, base) ||
		strings.HasPrefix(base, "faiss_index") || strings.HasSuffix(base, ".faiss")
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
	if doc.assembly || f.ix.asm[doc.id] {
		return f.assembly(name, doc)
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
		for _, p := range [...]string{p, nameOf(p), "memories/" + p, "memories/" + nameOf(p), path.Base(p), "memories/" + path.Base(p)} {
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
	if doc.assembly {
		return f.assembly(name, doc)
	}
	id, note := f.idOf(name, doc)
	taken, err := f.take(name, id, cmp.Or(reason, note), doc, raw, mends)
	if err != nil || !taken {
		return err
	}
	if reason != "" {
		return f.problem(Problem{Path: name, ID: id, Kind: KindCopy, Reason: reason, Taken: true})
	}
	reason = "the file's name says another id than the one inside, which counts"
	if says := f.ix.byPath[name]; says != "" && says != id {
		reason = fmt.Sprintf("the index says %q, the file says otherwise, and counts", says)
	}
	return f.problem(Problem{Path: name, ID: id, Kind: KindWrongID, Reason: reason, Taken: true})
}

// take yields the memory, and what is to be said of it.
func (f *folder) take(name, id, note string, doc *object, raw []byte, mends []string) (bool, error) {
	taken, err := f.item(Item{ID: id, JSON: doc.withID(id), Path: name, Note: note}, raw)
	if err != nil || !taken {
		return taken, err
	}
	if len(mends) > 0 {
		err = f.problem(Problem{Path: name, ID: id, Kind: KindMended, Reason: strings.Join(mends, "; "), Taken: true})
	}
	if _, named := f.ix.files[id]; err == nil && f.ix.complete && !named && f.ix.byPath[name] == "" {
		err = f.problem(Problem{Path: name, ID: id, Kind: KindUnindexed, Reason: "no entry of " + indexName + " names it; taken all the same", Taken: true})
	}
	return true, err
}

func (f *folder) assembly(name string, doc *object) error {
	f.asm[doc.id] = true
	id := doc.id
	_ = members(doc.text, func(member string, val jsontext.Value) error {
		if member == "assembly_id" && val.Kind() == '"' {
			id = unquote(val)
		}
		return nil
	})
	f.asm[id] = true
	return f.problem(Problem{Path: name, ID: id, Kind: KindAssembly, Reason: "assemblies are not imported yet"})
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
	reason := "differs from " + of + ", which was taken"
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
	case "memories", "vector_index":
		return nil
	case "assemblies":
		return f.assemblies(name)
	case "backups", "corrupted_backups", "ltm":
		return f.setAside(name)
	case "logs", "stats":
		return f.left(name, "no memories: left")
	}
	if strings.HasPrefix(name, ".") {
		return nil
	}
	return f.left(name, "a folder that the format does not know: nothing in it was read but what the index names")
}

func (f *folder) assemblies(dir string) error {
	names, err := f.tree(dir)
	for _, name := range names {
		if err != nil {
			break
		}
		f.files[name] = true
		if path.Ext(name) != ".json" {
			err = f.left(name, "no assembly")
			continue
		}
		var doc *object
		if doc, _, _, err = f.document(name); doc != nil {
			err = f.assembly(name, doc)
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
		reason := fmt.Sprintf("the index names %q, which is not there", f.ix.files[id])
		if err := f.problem(Problem{Path: indexName, ID: id, Kind: KindMissing, Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

// known says that a file or an entry has the id, readable or not.
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
	bare := strings.TrimPrefix(id, "asm:")
	for _, a := range [...]string{id, bare, "asm:" + bare} {
		if f.asm[a] || f.ix.asm[a] || f.files["assemblies/"+nameOf(a)+".json"] || f.files[nameOf(a)+".json"] {
			return true
		}
	}
	return false
}
