package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/jsondoc"
)

// lineage is information about assemblies that is stored outside of their files: which assemblies were merged into
// which, and how often each was activated.
type lineage struct {
	merges      []merge
	into        map[string][]string // target → sources, in the order of the log
	status      map[string]string   // status of the clean-up, by merge event
	activations map[string]int64
	mergeLog    string // name of the file that was read, "" if none
	stats       string
}

type merge struct {
	event, target string
	sources       []string
}

func newLineage() lineage {
	return lineage{into: map[string][]string{}, status: map[string]string{}, activations: map[string]int64{}}
}

// readLogsOrStats reads the merge logs if dir is logs, or the statistics if dir is stats. It reports the other
// files in dir as not imported.
func (f *folder) readLogsOrStats(dir string) error {
	names, err := f.tree(dir)
	for _, name := range names {
		if err != nil {
			break
		}
		switch base := path.Base(name); {
		case dir == "logs" && strings.HasPrefix(base, "merge_log") && strings.HasSuffix(base, ".jsonl"):
			err = f.readMerges(name)
		case name == "stats/assembly_activation_stats.json":
			err = f.readStats(name)
		default:
			err = f.reportNotMemory(name, "not about memories or assemblies: not imported")
		}
	}
	return err
}

// readMerges reads the merge log, which has one event per line. It reports an invalid line and continues with the next
// one.
//
//	{"event_type":"merge_creation","merge_event_id":…,"source_assembly_ids":[…],"target_assembly_id":…,…}
//	{"event_type":"cleanup_status_update","target_merge_event_id":…,"new_status":"completed"|"failed","error":…}
//
// Early versions write the event types merge and cleanup_update, and the member status or cleanup_status in place of
// new_status.
func (f *folder) readMerges(name string) error {
	file, err := f.open(name)
	if err != nil {
		return f.problem(Problem{Path: name, Kind: KindUnread, Reason: err.Error()})
	}
	defer file.Close()
	f.history.mergeLog = name
	in := bufio.NewReaderSize(file, 64<<10)
	events, bad := 0, 0
	for n := 1; ; n++ {
		line, err := f.line(in)
		if errors.Is(err, errEndless) {
			at := fmt.Sprintf("%s:%d", name, n)
			if err := f.problem(Problem{Path: at, Kind: KindIndex,
				Reason: fmt.Sprintf("the line has more than %d bytes; the lines after it were not read",
					f.longest())}); err != nil {
				return err
			}
			break
		}
		if bare := bytes.TrimSpace(line); len(bare) > 0 || errors.Is(err, errTooLarge) {
			if errors.Is(err, errTooLarge) || !f.history.event(bare) {
				bad++
				at := fmt.Sprintf("%s:%d", name, n)
				if err := f.problem(Problem{Path: at, Kind: KindIndex,
					Reason: "not a merge event; the other lines were read"}); err != nil {
					return err
				}
			} else {
				events++
			}
		}
		if err != nil && !errors.Is(err, errTooLarge) {
			break
		}
	}
	f.census.file(name,
		fmt.Sprintf("%s read into merged_from, %d not readable; the times and similarities of the merges, which only the "+
			"log has, are not imported", human.Count(events, "event", "events"), bad))
	return f.ctx.Err()
}

// event adds the merge event in a line of the merge log. It returns false if the line has no merge event.
func (l *lineage) event(line []byte) bool {
	var kind, event, of, target, status string
	var sources []string
	text := map[string]*string{"event_type": &kind, "merge_event_id": &event, "target_merge_event_id": &of,
		"target_assembly_id": &target,
		"new_status":         &status, "status": &status, "cleanup_status": &status}
	doc, _, err := parse(line)
	if err != nil {
		return false
	}
	err = members(doc.text, func(name string, val jsontext.Value) error {
		if s, ok := text[name]; ok && val.Kind() == '"' {
			*s = unquote(val)
		}
		if name == "source_assembly_ids" && val.Kind() == '[' {
			var err error
			sources, err = jsondoc.DecodeStrings(val.Clone())
			return err
		}
		return nil
	})
	switch {
	case err != nil:
		return false
	case strings.HasPrefix(kind, "merge") && target != "":
		l.merges = append(l.merges, merge{event, target, sources})
		l.into[target] = append(l.into[target], sources...)
		if status != "" {
			l.status[event] = status
		}
	case strings.HasPrefix(kind, "cleanup") && of != "":
		l.status[of] = status
	default:
		return false
	}
	return true
}

// readStats reads the file with the number of activations of each assembly. The file has the form {id:int}, or
// {"activation_counts":{id:int},…}.
func (f *folder) readStats(name string) error {
	doc, _, _, err := f.document(name)
	if doc == nil {
		return err
	}
	f.history.stats = name
	count := func(id string, val jsontext.Value) error {
		if n, err := jsondoc.DecodeCount(val); err == nil && val.Kind() == '0' {
			f.history.activations[id] = n
		}
		return nil
	}
	_ = members(doc.text, func(id string, val jsontext.Value) error { // cannot fail: document has parsed it
		if id == "activation_counts" && val.Kind() == '{' {
			return members(val.Clone(), count)
		}
		return count(id, val)
	})
	f.census.file(name, fmt.Sprintf("%s read into activation_count",
		human.Count(len(f.history.activations), "count", "counts")))
	return nil
}

// enrich adds the information in the merge log and the stats to an assembly. It appends the sources in the log to
// merged_from, and replaces activation_count if the stats have a larger count.
func (l *lineage) enrich(item *Item) error {
	sources := l.sourcesOf(item.ID)
	count, counted := l.activations[item.ID]
	if len(sources) == 0 && !counted {
		return nil
	}
	doc, err := jsondoc.Parse(item.JSON, jsondoc.DeepestDepth)
	if err != nil {
		return err
	}
	var notes []string
	raw, _ := doc.Get("merged_from")
	if merged, ok := listed(raw); ok {
		n := len(merged)
		for _, id := range sources {
			if !slices.Contains(merged, id) {
				merged = append(merged, id)
			}
		}
		if len(merged) > n {
			text, err := jsondoc.AppendStrings(nil, merged, 1)
			if err != nil {
				return err
			}
			doc.Set("merged_from", text, nil)
			notes = append(notes, fmt.Sprintf("%d ids in merged_from are from %s", len(merged)-n, l.mergeLog))
		}
	}
	raw, there := doc.Get("activation_count")
	if was, err := countOf(raw, there); err == nil && counted && count > was {
		doc.Set("activation_count", strconv.AppendInt(nil, count, 10), nil)
		notes = append(notes, "activation_count is from "+l.stats)
	}
	if len(notes) > 0 {
		item.JSON = doc.AppendDocument(nil)
		item.Note = strings.Join(notes, "; ")
	}
	return nil
}

// listed parses a list of ids. An absent or null list is empty. listed returns false if raw is something else.
func listed(raw []byte) ([]string, bool) {
	if raw == nil {
		return nil, true
	}
	list, err := jsondoc.DecodeStrings(raw)
	return list, err == nil
}

func countOf(raw []byte, there bool) (int64, error) {
	if !there {
		return 0, nil
	}
	return jsondoc.DecodeCount(raw)
}

// sourcesOf returns the ids that were merged into an assembly according to the log, directly or
// through other assemblies, each once. It stops at cycles.
func (l *lineage) sourcesOf(id string) []string {
	var out []string
	met := map[string]bool{id: true}
	var walk func(id string)
	walk = func(id string) {
		for _, s := range l.into[id] {
			if !met[s] {
				met[s] = true
				walk(s)
				out = append(out, s)
			}
		}
	}
	walk(id)
	return out
}

// unknownHistory reports merges in the log whose assemblies do not exist or were not cleaned up, and activation counts
// of assemblies that do not exist.
func (f *folder) unknownHistory() error {
	for _, m := range f.history.merges {
		_, there := f.run.groups[m.target]
		if !there {
			reason := fmt.Sprintf("according to the merge log, this assembly was merged from %s, but the assembly "+
				"has no file and no entry in the index",
				strings.Join(m.sources, ", "))
			if err := f.problem(Problem{Path: f.history.mergeLog, ID: m.target, Kind: KindGhost, Reason: reason}); err != nil {
				return err
			}
		}
		for _, s := range m.sources {
			// FAILURES 42: a crash between a merge and its clean-up. Whether the merge was repeated
			// since is unknown, so nothing is dropped.
			if o, ok := f.run.groups[s]; ok && there && s != m.target && f.run.groups[m.target] != o {
				reason := fmt.Sprintf("according to the merge log, this assembly was merged into %s (clean-up: %s), "+
					"but still exists; both were imported: merge the two again to complete the merge",
					m.target, cleanup(f.history.status[m.event]))
				if err := f.problem(Problem{Path: o.path, ID: s, Kind: KindMerge, Reason: reason, Taken: true}); err != nil {
					return err
				}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.history.activations)) {
		if _, ok := f.run.groups[id]; !ok {
			reason := fmt.Sprintf("according to the stats, this assembly was activated %s, but the assembly has no "+
				"file and no entry in the index",
				human.Count(int(f.history.activations[id]), "time", "times"))
			if err := f.problem(Problem{Path: f.history.stats, ID: id, Kind: KindGhost, Reason: reason}); err != nil {
				return err
			}
		}
	}
	return nil
}

func cleanup(status string) string {
	if status == "" {
		return "pending"
	}
	return status
}
