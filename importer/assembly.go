package importer

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/jsondoc"
)

const groupFolder = "assemblies"

// isGroup reports whether a file is an assembly. It decides by the JSON members of the file, by the index, or by the
// folder.
func (f *folder) isGroup(name string, doc *object) bool {
	if doc.isAssembly() || f.ix.groupAt[name] != "" || path.Dir(name) == groupFolder {
		return true
	}
	_, ok := f.ix.groups[doc.id]
	return ok && doc.idText && !doc.content
}

// listGroups collects the paths of the files of assemblies without reading the files, because assemblies are yielded
// last, when all memories are known. It reports the other files in the folder.
func (f *folder) listGroups() error {
	names, err := f.tree(groupFolder)
	for _, name := range names {
		if err != nil {
			break
		}
		f.files[name] = true
		if path.Ext(name) == ".json" {
			f.groups = append(f.groups, name)
		} else {
			err = f.reportNotMemory(name, "not an assembly")
		}
	}
	return err
}

// assemblies yields the assemblies, after the last memory. It adds to each assembly the information about it from the
// merge log and the stats file.
func (f *folder) assemblies() error {
	slices.Sort(f.groups)
	f.groups = slices.Compact(f.groups)
	for _, name := range f.groups {
		doc, _, _, err := f.document(name)
		if doc == nil {
			f.barren[name] = true
		} else {
			err = f.copies(name, doc)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range f.groups {
		if f.barren[name] {
			continue
		}
		doc, raw, mends, err := f.document(name)
		if err != nil {
			return err
		}
		if doc == nil {
			continue // the file was removed meanwhile
		}
		g := group{id: f.ix.groupAt[name], note: "the file has no id; the id from the index was used",
			history: &f.history}
		if g.id == "" {
			g.id, g.note = strings.TrimSuffix(path.Base(name), ".json"), "the file has no id; the id from the file "+
				"name was used"
		}
		if err := f.group(name, doc, raw, mends, g); err != nil {
			return err
		}
	}
	if err := f.missingGroups(); err != nil {
		return err
	}
	if err := f.lacks(); err != nil {
		return err
	}
	return f.unknownHistory()
}

// missingGroups reports assemblies in the index that have no file.
func (f *folder) missingGroups() error {
	for _, id := range slices.Sorted(maps.Keys(f.ix.groups)) {
		if _, ok := f.run.groups[id]; ok || f.files[f.ix.groups[id]] || f.hasGroupFile(id) {
			continue
		}
		reason := fmt.Sprintf("the index names assembly %q, which does not exist", f.ix.groups[id])
		if err := f.problem(Problem{Path: indexName, ID: id, Kind: KindMissing, Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) hasGroupFile(id string) bool {
	return f.files[groupFolder+"/"+nameOf(id)+".json"] || f.files[nameOf(id)+".json"]
}

// knownGroup reports whether the source has an assembly with this id: as a yielded item, in the index or as a file.
// The id may begin with "asm:", as in a mapping (a file that maps ids to vectors).
func (f *folder) knownGroup(id string) bool {
	bare := strings.TrimPrefix(id, "asm:")
	for _, id := range [...]string{id, bare, "asm:" + bare} {
		if _, ok := f.run.groups[id]; ok {
			return true
		}
		if _, ok := f.ix.groups[id]; ok || f.hasGroupFile(id) {
			return true
		}
	}
	return false
}

// group has the information about an assembly that is not in the assembly's own file: the id from the index or the file
// name, and the history.
type group struct {
	id, note string   // used if the document has no id
	history  *lineage // merge log and stats; nil: none
}

// group yields an assembly. name is the path of its file, and raw is the text of this file. g has the information
// about the assembly from other files. mends describes the corrections that were made in the text; if the assembly is
// yielded, group reports these corrections as a Problem.
func (r *run) group(name string, doc *object, raw []byte, mends []string, g group) error {
	it := Item{ID: doc.group, Assembly: true, JSON: doc.text, Path: name, names: doc.names}
	switch {
	case it.ID != "":
	case doc.idText:
		it.ID = doc.id
	case doc.id != "":
		it.ID, it.Note = doc.id, "the id was a number, and is now a string"
	default:
		it.ID, it.Note = g.id, g.note
	}
	if doc.group == "" && !doc.idText {
		it.JSON = doc.with("assembly_id", it.ID, slices.Contains(doc.names, "assembly_id"))
	}
	if g.history != nil {
		if err := g.history.enrich(&it); err != nil {
			mends = append(mends, err.Error())
		}
	}
	taken, err := r.item(it, raw)
	if err != nil || !taken {
		return err
	}
	// A document that cannot be decoded is left for the store to refuse.
	a, err := assembly.Decode(it.JSON, assembly.DecodeOptions{Limits: noLimits(), Location: r.opts.Location})
	if err == nil {
		r.lacking = append(r.lacking, lack{name, it.ID, len(a.MemoryIDs), r.unseen(a.MemoryIDs)})
	}
	if len(mends) == 0 {
		return nil
	}
	return r.problem(Problem{Path: name, ID: it.ID, Kind: KindMended, Reason: strings.Join(mends, "; "), Taken: true})
}

func noLimits() assembly.Limits {
	const huge = 1 << 30
	return assembly.Limits{AssemblyBytes: huge, IDBytes: huge, Depth: huge, EmbeddingDim: huge, Members: huge}
}

// lack is an assembly with members that had not been yielded before the assembly.
type lack struct {
	path, id string
	members  int
	ids      []string
}

func (r *run) unseen(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, ok := r.seen[id]; return ok })
}

// lacks reports the members of assemblies that the source has not yielded at all. It is called after the last item.
func (r *run) lacks() error {
	for _, l := range r.lacking {
		ids := r.unseen(l.ids)
		if len(ids) == 0 {
			continue
		}
		first := strings.Join(ids[:min(len(ids), 5)], ", ")
		if len(ids) > 5 {
			first += ", …"
		}
		err := r.problem(Problem{Path: l.path, ID: l.id, Kind: KindMember, Taken: true,
			Reason: fmt.Sprintf("%d of its %d members are not memories of the source; their ids stay in the "+
				"assembly: %s", len(ids),
				l.members, first)})
		if err != nil {
			return err
		}
	}
	return nil
}

// copies examines the copies of whole memories that version 1.8 stores inside an assembly. The copies are stale
// (FAILURES 43). So copies ignores the copy of a memory that was already yielded. It reports a copy whose memory was
// not yielded, and with Options.SetAside also yields this copy as a memory.
func (r *run) copies(name string, doc *object) error {
	if !slices.Contains(doc.names, "memories") {
		return nil
	}
	whole, err := jsondoc.Parse(doc.text, jsondoc.DeepestDepth)
	if err != nil {
		return nil // the store will refuse the document
	}
	list, _ := whole.Get("memories")
	if len(list) == 0 || list[0] != '[' {
		return nil
	}
	return jsondoc.EachElement(list, func(i int, text []byte) error {
		copied, err := look(slices.Clone(text))
		if err != nil || !copied.idText || !copied.content {
			return nil
		}
		if _, ok := r.seen[copied.id]; ok {
			return nil
		}
		at := fmt.Sprintf("%s: memories[%d]", name, i)
		p := Problem{Path: at, ID: copied.id, Kind: KindSetAside, Taken: r.opts.SetAside,
			Reason: "a copy, inside an assembly, of a memory that exists nowhere else"}
		if !p.Taken {
			p.Reason += "; to import it: memctl import --set-aside"
		} else if _, err := r.item(Item{ID: copied.id, JSON: copied.text, Path: at, Note: "a copy inside an assembly",
			names: copied.names}, copied.text); err != nil {
			return err
		}
		return r.problem(p)
	})
}
