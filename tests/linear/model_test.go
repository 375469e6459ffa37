package linear

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// linearKeys is the number of memories in a history: few, so that operations collide.
const linearKeys = 4

// linearOp is an operation as it is called. Each value is written by only one operation, so a value
// stands for the version that it was written as.
type linearOp struct {
	Kind   string        `json:"kind"` // get, put, delete, batch, tx
	Reads  []int         `json:"reads,omitempty"`
	Writes []linearWrite `json:"writes,omitempty"`
}

type linearWrite struct {
	Key    int    `json:"key"`
	Value  int64  `json:"value"` // 0: deleted
	Absent bool   `json:"absent,omitempty"`
	If     int64  `json:"if,omitempty"` // it has this value; 0: no condition
	at     uint64 // the version that it became, if it was reported
}

// The outcomes of an operation.
const (
	linearOK       = "ok"
	linearNotFound = "not found" // of a deletion
	linearConflict = "conflict"
	linearRefused  = "refused" // nothing was written
	linearUnknown  = "unknown" // it may take effect at any time from the call on, or never
)

// linearOut is the answer.
type linearOut struct {
	Result   string   `json:"result"`
	Saw      []int64  `json:"saw,omitempty"` // of Reads; 0: absent
	Versions []uint64 `json:"versions,omitempty"`
	Version  uint64   `json:"version,omitempty"` // of a put
}

// linearEvent is a line of a process's record: a call with Op, an answer with Out.
type linearEvent struct {
	History int         `json:"history"`
	Number  int64       `json:"number"` // of the operation, also the value it writes first
	At      int64       `json:"at"`     // on the clock that all processes share
	Client  int         `json:"client"`
	Op      *linearOp   `json:"op,omitempty"`
	Out     *linearOut  `json:"out,omitempty"`
	Past    *linearPast `json:"past,omitempty"`
}

// linearPast has the versions of one key that the store reports at the end. It is used only to choose
// what to try first, and to find which version a value became.
type linearPast struct {
	Key      int      `json:"key"`
	Whole    bool     `json:"whole"` // none before them
	Versions []uint64 `json:"versions"`
	Values   []int64  `json:"values"` // 0: deleted
}

// linearState is the content of the store for one history.
type linearState struct {
	cells [linearKeys]int64
	last  uint64 // the highest version written
}

// linearModel is the store as one map that does one operation after the other. Versions are in the order
// of the writes in time: a write whose version is known comes after all those of lower versions. A write
// whose outcome is unknown may come at any time; one that never happened comes after everything.
var linearModel = porcupine.Model{
	Partition: linearPartition,
	Init:      func() any { return linearState{} },
	Step: func(state, input, output any) (bool, any) {
		return linearStep(state.(linearState), input.(*linearOp), output.(*linearOut))
	},
	Hash: func(state any) uint64 {
		s := state.(linearState)
		h := s.last
		for _, v := range s.cells {
			h = h*0x9e3779b97f4a7c15 + uint64(v)
			h ^= h >> 29
		}
		return h
	},
	DescribeOperation: func(input, output any) string { return linearText(input.(*linearOp), output.(*linearOut)) },
	DescribeState:     func(state any) string { return fmt.Sprint(state.(linearState).cells) },
}

func linearStep(s linearState, op *linearOp, out *linearOut) (bool, linearState) {
	if out.Result == linearOK {
		for i, k := range op.Reads {
			if s.cells[k] != out.Saw[i] {
				return false, s
			}
		}
	}
	holds := true
	for _, w := range op.Writes {
		holds = holds && (!w.Absent || s.cells[w.Key] == 0) && (w.If == 0 || s.cells[w.Key] == w.If)
	}
	switch out.Result {
	case linearConflict:
		return !holds, s
	case linearNotFound:
		return holds && s.cells[op.Writes[0].Key] == 0, s
	case linearUnknown:
		if !holds { // it failed, unless its effect was seen
			return !slices.ContainsFunc(op.Writes, func(w linearWrite) bool { return w.at != 0 }), s
		}
	case linearOK:
		if !holds || op.Kind == "delete" && s.cells[op.Writes[0].Key] == 0 {
			return false, s
		}
	}
	last := s.last
	for _, w := range op.Writes {
		if w.at != 0 {
			if w.at <= s.last {
				return false, s
			}
			last = max(last, w.at)
		}
		s.cells[w.Key] = w.Value
	}
	s.last = last
	return true, s
}

// linearPartition separates the keys if no operation concerns several: then the whole is linearizable if
// each part is.
func linearPartition(history []porcupine.Operation) [][]porcupine.Operation {
	parts := make([][]porcupine.Operation, linearKeys)
	for _, o := range history {
		in := o.Input.(*linearOp)
		if len(in.Reads)+len(in.Writes) > 1 {
			return [][]porcupine.Operation{history}
		}
		k := 0
		if len(in.Reads) > 0 {
			k = in.Reads[0]
		} else {
			k = in.Writes[0].Key
		}
		parts[k] = append(parts[k], o)
	}
	return slices.DeleteFunc(parts, func(p []porcupine.Operation) bool { return len(p) == 0 })
}

// linearHistory makes a history from the records. An operation of a process that was killed before the
// answer has an unknown outcome. wrong has the contradictions that need no model: one value with two
// versions, or one version of two values.
func linearHistory(events []linearEvent) (ops []porcupine.Operation, deletions [linearKeys]int, wrong []string) {
	outs := map[int64]*linearEvent{}
	for i := range events {
		if events[i].Out != nil {
			outs[events[i].Number] = &events[i]
		}
	}
	versions := map[int64]uint64{}
	values := map[uint64]int64{}
	var refused []*linearOp
	learn := func(value int64, version uint64) {
		if value == 0 || version == 0 {
			return
		}
		if was, ok := versions[value]; ok && was != version {
			wrong = append(wrong, fmt.Sprintf("value %d was version %d, and %d", value, was, version))
		}
		if was, ok := values[version]; ok && was != value {
			wrong = append(wrong, fmt.Sprintf("version %d was value %d, and %d", version, was, value))
		}
		versions[value], values[version] = version, value
	}
	for k := range deletions {
		deletions[k] = math.MaxInt // not known
	}
	for _, e := range events {
		if p := e.Past; p != nil {
			if p.Whole {
				deletions[p.Key] = 0
			}
			for i, v := range p.Values {
				learn(v, p.Versions[i])
				if p.Whole && v == 0 {
					deletions[p.Key]++
				}
			}
		}
		if e.Op == nil {
			continue
		}
		o := porcupine.Operation{ClientId: e.Client, Call: e.At, Return: math.MaxInt64, Input: e.Op, Output: &linearOut{Result: linearUnknown}}
		if out := outs[e.Number]; out != nil {
			for i, v := range out.Out.Saw {
				learn(v, out.Out.Versions[i])
			}
			if out.Out.Version != 0 {
				learn(e.Op.Writes[0].Value, out.Out.Version)
			}
			if out.Out.Result == linearRefused {
				refused = append(refused, e.Op)
				continue
			}
			o.Output = out.Out
			if out.Out.Result != linearUnknown {
				o.Return = out.At
			}
		}
		if len(e.Op.Writes) == 0 && o.Output.(*linearOut).Result == linearUnknown {
			continue // it changed nothing and reported nothing
		}
		ops = append(ops, o)
	}
	for _, o := range ops {
		op := o.Input.(*linearOp)
		for i := range op.Writes {
			op.Writes[i].at = versions[op.Writes[i].Value]
		}
	}
	for _, op := range refused {
		for _, w := range op.Writes {
			if at := versions[w.Value]; at != 0 && w.Value != 0 {
				wrong = append(wrong, fmt.Sprintf("value %d was refused, and is version %d", w.Value, at))
			}
		}
	}
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return ops, deletions, wrong
}

// linearJudge judges a history, at first on the assumption that an operation with an unknown outcome
// which left no trace in the past of its keys did not happen: that is usually so, and there is much less
// to try. deletions has those in the past.
func linearJudge(ops []porcupine.Operation, deletions [linearKeys]int) (porcupine.CheckResult, porcupine.LinearizationInfo) {
	for _, o := range ops {
		op := o.Input.(*linearOp)
		for _, w := range op.Writes {
			if w.Value == 0 && o.Output.(*linearOut).Result == linearOK && op.Kind == "delete" {
				deletions[w.Key]-- // a batch or a transaction may have found nothing to delete
			}
		}
	}
	likely := slices.DeleteFunc(slices.Clone(ops), func(o porcupine.Operation) bool {
		return o.Output.(*linearOut).Result == linearUnknown &&
			!slices.ContainsFunc(o.Input.(*linearOp).Writes, func(w linearWrite) bool {
				return w.at != 0 || w.Value == 0 && deletions[w.Key] > 0
			})
	})
	if len(likely) < len(ops) {
		if result := porcupine.CheckOperationsTimeout(linearModel, likely, linearPatience); result == porcupine.Ok {
			return result, porcupine.LinearizationInfo{}
		}
	}
	return porcupine.CheckOperationsVerbose(linearModel, ops, linearPatience)
}

// linearText returns an operation as text.
func linearText(op *linearOp, out *linearOut) string {
	var b strings.Builder
	b.WriteString(op.Kind)
	for i, k := range op.Reads {
		fmt.Fprintf(&b, " read %d", k)
		if out.Result == linearOK {
			fmt.Fprintf(&b, "=%d@%d", out.Saw[i], out.Versions[i])
		}
	}
	for _, w := range op.Writes {
		fmt.Fprintf(&b, " write %d=%d", w.Key, w.Value)
		if w.Absent {
			b.WriteString(" if absent")
		}
		if w.If != 0 {
			fmt.Fprintf(&b, " if %d", w.If)
		}
		if w.at != 0 {
			fmt.Fprintf(&b, " @%d", w.at)
		}
	}
	return b.String() + ": " + out.Result
}

// linearList returns a history as text, by the time of the calls.
func linearList(ops []porcupine.Operation) string {
	var b strings.Builder
	for _, o := range ops {
		end := "…"
		if o.Return != math.MaxInt64 {
			end = fmt.Sprint((o.Return - ops[0].Call) / 1000)
		}
		fmt.Fprintf(&b, "%8d–%s µs, client %d: %s\n", (o.Call-ops[0].Call)/1000, end, o.ClientId, linearText(o.Input.(*linearOp), o.Output.(*linearOut)))
	}
	return b.String()
}
