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
	files  map[string]bool // all files in the root, memories/ and assemblies/, and files that the index adds
	barren map[string]bool // files that could not be read, or were reported as having no memory
	// Files with a matching name and without an embedding: the dimension of the others decides
	// whether they get one.
	bare    []string
	waiting []string // files that are read after all files with a matching name
	groups  []string // files of assemblies, which come last
	history lineage  // information from merge log and stats
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
			err = f.reportNotMemory(name, "neither a memory file nor another file of the Synthians format")
		default:
			f.spare(name)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range f.bare {
		if err := f.importBare(name); err != nil {
			return err
		}
	}
	for _, name := range f.waiting {
		if err := f.importPostponed(name, ""); err != nil {
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

// derived reports whether a file can be rebuilt from the memories.
func derived(name string) bool {
	base := path.Base(name)
	return base == indexName || slices.Contains(mappingNames, base) ||
		strings.HasPrefix(base, "faiss_index") || strings.HasSuffix(base, ".faiss")
}

// spare records in the report what was done with a file that can be rebuilt from the memories. Mappings are
// reported elsewhere.
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

func (f *folder) reportNotMemory(name, reason string) error {
	return f.problem(Problem{Path: name, Kind: KindNotMemory, Reason: reason})
}

// namedElsewhere returns the existing .json files that the index lists outside of the root, memories/ and assemblies/.
// os.Root prevents paths that lead out of the folder.
func (f *folder) namedElsewhere() []string {
	var extra []string
	for _, name := range slices.Sorted(maps.Keys(f.ix.byPath)) {
		if f.files[name] || !fs.ValidPath(name) || path.Ext(name) != ".json" {
			continue
		}
		if dir := path.Dir(name); dir == "." || dir == "memories" || dir == "assemblies" {
			continue // the folder was listed, so the file does not exist
		}
		if _, err := f.root.Stat(name); err == nil {
			f.files[name] = true
			extra = append(extra, name)
		}
	}
	return extra
}

// file yields the memory in a .json file. It postpones files of assemblies, files whose name does not match the id, and
// if there are vector files, memories without an embedding.
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
		return f.reportNotMemory(name, "a JSON object without content")
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

// importBare yields the memory in a file that the method file postponed because the memory has no embedding.
func (f *folder) importBare(name string) error {
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

// idOf returns the id in the file. If the file has no id, idOf returns the id of the index entry with this file, or
// otherwise the id in the file's name. note says where the id comes from, or that it was a number; "" means that the
// file has the id as a string.
func (f *folder) idOf(name string, doc *object) (id, note string) {
	switch {
	case doc.idText:
		return doc.id, ""
	case doc.id != "":
		return doc.id, "the id was a number, and is now a string"
	case f.ix.byPath[name] != "":
		return f.ix.byPath[name], "the file has no id; the id from the index was used"
	}
	stem, _, _ := strings.Cut(path.Base(name), ".json")
	return stem, "the file has no id; the id from the file name was used"
}

// place returns the path of the file of the memory with this id: the file in the index, whose path may be written in
// several ways, or the file named after the id. The bool is false if no such file exists.
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

// importPostponed yields the memory in a file that was postponed because its name does not match the id. If reason
// is not empty, the file is a copy that is imported in place of the file with the matching name, and reason tells
// why. If the file has an assembly, importPostponed adds the file to the list of files with assemblies.
func (f *folder) importPostponed(name, reason string) error {
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
	reason = "the name of the file does not match the id in the file; the id in the file was used"
	if says := f.ix.byPath[name]; says != "" && says != id {
		reason = fmt.Sprintf("the index lists this file under the id %q; the id in the file was used", says)
	}
	return f.problem(Problem{Path: name, ID: id, Kind: KindWrongID, Reason: reason, Taken: true})
}

// take yields the memory in a file, and the problems of the file. note and mends become the texts of the item's note
// and of a Problem. The bool is false if the memory was not yielded, because its id was already yielded.
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
			Reason: "no entry of " + indexName + " names the file; the file was imported nevertheless", Taken: true})
	}
	return true, err
}

// bak imports the memory in a copy X.bak or X.json.bak, but only if X.json is missing or cannot be read.
func (f *folder) bak(name string) error {
	of := strings.TrimSuffix(strings.TrimSuffix(name, ".bak"), ".json") + ".json"
	switch {
	case derived(of):
		return f.reportNotMemory(name, "not imported: a copy of a file that can be rebuilt")
	case !f.files[of]:
		return f.importPostponed(name, of+" is missing, so this copy was imported")
	case f.barren[of]:
		return f.importPostponed(name, of+" cannot be read, so this copy was imported")
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

// folder reads a folder in the root that belongs to the Synthians format, except memories/. It reports any other
// folder, except hidden ones.
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
		return f.readLogsOrStats(name)
	}
	if strings.HasPrefix(name, ".") {
		return nil
	}
	return f.reportNotMemory(name,
		"not a folder of the Synthians format: only the files in it that the index lists were read")
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
			err = f.reportNotMemory(name, "not a known file of the Synthians format")
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

// known reports whether a file or an entry of the index has this id, even if the file cannot be read.
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
