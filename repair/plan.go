package repair

import (
	"context"
	"fmt"
	"iter"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
)

// Verb is the kind of a repair action.
type Verb string

// The kinds of repair actions, in the order in which they are applied.
const (
	// MakeRoom moves an object that is not a folder, but has the name of one of the store's folders, to quarantine/.
	// If the object is a link, its target is not touched.
	MakeRoom Verb = "make room for the folder"
	// MoveOut moves an object that is not a file, but has the name of one of the store's files, to quarantine/.
	MoveOut   Verb = "move out of the way"
	FixConfig Verb = "write a valid config.json" // invalid members of config.json get their defaults
	NewMarks  Verb = "rewrite the checkpoint"
	NewLog    Verb = "begin a new log" // the readable part of the old log is written to files and index
	// SetSegment moves a segment of the log that is no longer needed to quarantine/: other files have its data, or it
	// has only history.
	SetSegment Verb = "set the segment aside"
	// SetIndexAside moves base and delta of the index to quarantine/. Opening the store then rebuilds the index.
	SetIndexAside Verb = "set the index aside"
	Reopen        Verb = "rebuild log and index" // opening the store rebuilds both
	Rebuild       Verb = "rebuild the index"     // the index is rebuilt from log and files
	SetAside      Verb = "set aside"             // the file is moved into quarantine/, with a note
	Restore       Verb = "restore the file"      // the file is restored from the copy in log or archive
	Adopt         Verb = "adopt"                 // the file's content becomes the newest version
	// Salvage stores the readable part of a document as a version that is marked as partial (see PartialKey).
	Salvage    Verb = "salvage"
	RecordLost Verb = "record as lost" // the document is deleted, and a note records what is known about it
	// RebuildScope rebuilds a scope of working memory from log and archive, and moves its file to quarantine/.
	RebuildScope Verb = "rebuild the scope"
	// TakeOut removes from an assembly the members that do not exist; see RepairPlan.TakeOutMissing.
	TakeOut        Verb = "take out what is missing"
	Recompute      Verb = "recompute the composite" // the composite is computed from the members' embeddings
	RebuildVectors Verb = "rebuild the vectors"     // the vectors are rebuilt from the embeddings in the documents
	RebuildView    Verb = "rebuild the view"        // the files of a view are rebuilt from the index
	Tidy           Verb = "tidy tmp/"               // leftovers of ended processes are removed
)

// order maps each kind of action to its place in the order in which Apply carries out actions, the lowest first.
var order = map[Verb]int{
	MakeRoom: -1, MoveOut: 0, FixConfig: 1, NewMarks: 2, NewLog: 3, SetSegment: 4, SetIndexAside: 5, Reopen: 6, Rebuild: 7,
	SetAside: 8, Restore: 9, Adopt: 10, Salvage: 11, RecordLost: 12,
	RebuildScope: 13, TakeOut: 14, Recompute: 15, RebuildVectors: 16, RebuildView: 17, Tidy: 18}

// Action is one step of a plan to repair a store.
type Action struct {
	Do       Verb
	Path     string // path in the store of the changed file
	ID       string // id of the memory or assembly, "" if the action is not about one
	From     string // source of the copy that the action uses, "" if it uses none
	Loses    string // data that is lost by the action, "" if none is
	Alone    bool   // the action requires that no other process has the store open
	Findings []Finding
}

func (a Action) String() string {
	s := string(a.Do)
	switch a.Do {
	// the verb names the object
	case FixConfig, NewMarks, NewLog, SetIndexAside, Reopen, Rebuild, RebuildVectors, Tidy:
	default:
		s += " " + a.Path
	}
	if k := kind.At(a.Path); a.ID != "" && (k == nil || a.Path != k.File(a.ID)) {
		s += " (" + human.Quote(a.ID) + ")"
	}
	if a.From != "" {
		s += ", from " + a.From
	}
	if a.Loses != "" {
		s += "; loses " + a.Loses
	}
	return s
}

// RepairPlan lists the actions that would repair the faults that verify found in a store.
type RepairPlan struct {
	Dir     string
	Actions []Action
	Left    []Finding // findings for which no action is possible, or none is necessary
	Summary Summary
	Worst   Severity
	// Processes are the ids of processes that have the store open. Actions with Alone set wait until these processes
	// have ended.
	Processes []int
	Unsure    []int // those of Processes that may have ended already, which this process cannot determine
	Elsewhere []int // ids of processes in another PID namespace, such as a container; they are ids in that namespace

	takeOut bool
	apply   func(context.Context, *RepairPlan) (*RepairReport, error)
}

// NewPlan returns an empty plan. Its method Apply calls the function apply. Programs get plans from PlanRepair instead.
func NewPlan(dir string, apply func(context.Context, *RepairPlan) (*RepairReport, error)) *RepairPlan {
	return &RepairPlan{Dir: dir, apply: apply}
}

// SetFindings replaces the actions of the plan by the actions that repair the given findings. It returns the first
// error that findings yields.
func (p *RepairPlan) SetFindings(findings iter.Seq2[Finding, error]) error {
	p.Actions, p.Left, p.Worst = nil, nil, Info
	list := &grouped{by: map[string]int{}}
	for f, err := range findings {
		if err != nil {
			return err
		}
		p.add(list, f)
	}
	p.Actions = list.sorted()
	return nil
}

// Apply performs the plan, and verifies the store. It repeats these two steps until nothing more can be done. So it
// also repairs damage that appears only after an earlier step. Files that other processes have open are repaired as far
// as that is safe.
//
// Apply may be interrupted at any point, and run again. Every action checks its target before it changes anything, and
// syncs the previous file in quarantine/ before it replaces or removes the file.
func (p *RepairPlan) Apply(ctx context.Context) (*RepairReport, error) { return p.apply(ctx, p) }

// TakeOutMissing adds actions that remove missing members from assemblies. Without these actions, Apply keeps such
// members: a missing member is not damage, and an import may still create it.
func (p *RepairPlan) TakeOutMissing() {
	p.takeOut = true
	list, left := &grouped{by: map[string]int{}}, p.Left
	for _, a := range p.Actions {
		for _, f := range a.Findings {
			p.add(list, f)
		}
	}
	p.Left = nil
	for _, f := range left {
		p.add(list, f)
	}
	p.Actions = list.sorted()
}

// Alone returns the number of actions for which no other process may have the store open.
func (p *RepairPlan) Alone() (n int) {
	for _, a := range p.Actions {
		if a.Alone {
			n++
		}
	}
	return n
}

func (p *RepairPlan) add(list *grouped, f Finding) {
	p.Worst = max(p.Worst, f.Severity)
	a, ok := actionFor(f)
	if f.Kind == AssemblyMembers {
		ok = p.takeOut
	}
	if !ok {
		p.Left = append(p.Left, f)
		return
	}
	list.add(a, f)
}

// grouped is a list of repair actions in which each action occurs once, with all findings that the action repairs.
type grouped struct {
	list []Action
	by   map[string]int
}

func (g *grouped) add(a Action, f Finding) {
	key := fmt.Sprint(a.Do, "\x00", a.Path, "\x00", a.ID)
	i, ok := g.by[key]
	if !ok {
		i = len(g.list)
		g.by[key], g.list = i, append(g.list, a)
	}
	g.list[i].Findings = append(g.list[i].Findings, f)
	if g.list[i].Loses == "" {
		g.list[i].Loses = a.Loses
	}
}
