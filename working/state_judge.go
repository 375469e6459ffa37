package working

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Judge returns the changes and the result of the operation in r at the moment now. It changes nothing in the state
// except the order of last use. The versions, the sequence numbers and the description of a new checkpoint are known
// only after Play; Complete then adds them to the Result.
func (s *State) Judge(now Moment, r *Request) (Delta, Result, error) {
	var d Delta
	res, err := s.judge(now, r, &d)
	if err != nil {
		return Delta{}, Result{}, err
	}
	if _, drop := r.Op.(OpDrop); !drop && s.Empty() && !d.Empty() {
		d.Changes = slices.Insert(d.Changes, 0, Change{Kind: ChangeAttach})
	}
	return d, res, nil
}

func (s *State) judge(now Moment, r *Request, d *Delta) (Result, error) {
	switch op := r.Op.(type) {
	case OpAttach:
		if s.Empty() {
			d.add(Change{Kind: ChangeAttach})
		}
		return Result{Created: fromMicro(s.created)}, nil
	case OpGet:
		return s.get(now, op), nil
	case OpPut:
		return s.judgePut(now, r, op, d)
	case OpDelete:
		return s.judgeDelete(now, op, d), nil
	case OpIncrement:
		return s.judgeIncrement(now, r, op, d)
	case OpExpire:
		return s.judgeExpire(now, op, d), nil
	case OpList:
		return s.list(now, op), nil
	case OpClear:
		return s.judgeClear(now, d), nil
	case OpAppend:
		d.Blind = true
		d.add(Change{Kind: ChangeAppend, Text: op.Text, Keep: op.Keep})
		return Result{N: int64(s.overflow(len(s.notes)+1, op.Keep))}, nil
	case OpNotes:
		return s.lastNotes(op.Last), nil
	case OpClearNotes:
		if len(s.notes) > 0 {
			d.add(Change{Kind: ChangeEmpty})
		}
		return Result{N: int64(len(s.notes))}, nil
	case OpCheckpoint, OpRestore, OpDiscard:
		return s.judgeMark(op, d)
	case OpCheckpoints:
		return s.listMarks(), nil
	case OpLoad:
		return s.load(now, op)
	case OpCount:
		return Result{Counts: s.count(now.Tick)}, nil
	case OpDrop:
		if s.Empty() {
			return Result{}, nil
		}
		d.add(Change{Kind: ChangeDrop})
		return Result{N: 1}, nil
	}
	return Result{}, fmt.Errorf("%w: working: unknown operation %T", errs.ErrInvalid, r.Op)
}

func (s *State) overflow(n, keep int) int {
	if keep <= 0 {
		return 0
	}
	return max(0, n-keep)
}

func (s *State) get(now Moment, op OpGet) Result {
	res := Result{Items: make([]Item, len(op.Names))}
	for i, name := range op.Names {
		res.Items[i].Name = name
		if it := s.live(name, now.Tick); it != nil {
			res.Items[i] = it.public(now.Tick, true)
			if !op.Peek && isUser(name) {
				s.use.touch(it)
			}
		}
	}
	return res
}

func (i *item) public(tick int64, value bool) Item {
	return i.cell.public(i.name, tick, value)
}

func (c *cell) public(name string, tick int64, value bool) Item {
	p := Item{Name: name, Found: true, Version: c.version, Updated: fromMicro(c.updated), TTL: c.ticksLeft(tick)}
	if value {
		p.Value = bytes.Clone(c.value)
	}
	return p
}

func (s *State) list(now Moment, op OpList) (res Result) {
	for name, it := range s.items {
		if isUser(name) && !it.over(now.Tick) {
			res.Items = append(res.Items, it.public(now.Tick, op.Values))
		}
	}
	sortItems(res.Items)
	return res
}

func sortItems(list []Item) {
	slices.SortFunc(list, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
}

func (s *State) judgePut(now Moment, r *Request, op OpPut, d *Delta) (Result, error) {
	d.Blind = r.Limits.Keys == 0 && r.Limits.Bytes == 0 && !s.Empty()
	res := Result{Items: make([]Item, len(op.Items))}
	for i, p := range op.Items {
		was := s.live(p.Name, now.Tick)
		switch {
		case p.Cond == IfAbsent && was != nil,
			p.Cond == IfVersion && (was == nil || was.version != p.Version):
			conflict := &ConflictError{Name: p.Name}
			if p.Cond == IfVersion {
				conflict.Expected = p.Version
			}
			if was != nil {
				conflict.Found = was.version
			}
			return Result{}, conflict
		}
		ttl := p.TTL
		if ttl == KeepTTL {
			if ttl = p.IfNew; was != nil {
				ttl = was.ticksLeft(now.Tick)
			}
		}
		d.Blind = d.Blind && p.Cond == Always && p.TTL != KeepTTL
		res.Items[i] = Item{Name: p.Name, Found: ttl != 0, TTL: ttl}
		if ttl == 0 {
			if d.Blind || s.items[p.Name] != nil {
				d.add(Change{Kind: ChangeDelete, Name: p.Name})
			}
			continue
		}
		d.add(Change{Kind: ChangePut, Name: p.Name, Value: p.Value, Deadline: deadline(now.Tick, ttl)})
	}
	return res, s.makeRoom(now.Tick, r, d)
}

func deadline(tick, ttl int64) int64 {
	switch {
	case ttl == Forever:
		return 0
	case ttl > math.MaxInt64-tick:
		return math.MaxInt64
	}
	return tick + ttl
}

func (s *State) judgeDelete(now Moment, op OpDelete, d *Delta) Result {
	res := Result{Items: make([]Item, len(op.Names))}
	for i, name := range op.Names {
		res.Items[i] = Item{Name: name, Found: s.live(name, now.Tick) != nil && !slices.Contains(op.Names[:i], name)}
		if s.items[name] != nil {
			d.add(Change{Kind: ChangeDelete, Name: name})
		}
	}
	return res
}

func (s *State) judgeIncrement(now Moment, r *Request, op OpIncrement, d *Delta) (Result, error) {
	var n int64
	put := OpPut{Items: []PutItem{{Name: op.Name, TTL: op.TTL, IfNew: op.IfNew}}}
	if was := s.live(op.Name, now.Tick); was != nil {
		var err error
		if n, err = parseInteger(was.value); err != nil {
			return Result{}, &errs.FieldError{Field: display(op.Name), Value: human.Quote(string(was.value)), Err: err}
		}
	}
	sum := n + op.By
	if (sum > n) != (op.By > 0) && op.By != 0 {
		return Result{}, &errs.FieldError{Field: display(op.Name), Value: strconv.FormatInt(n, 10),
			Limit: fmt.Sprintf("%d to %d", int64(math.MinInt64), int64(math.MaxInt64)), Err: ErrOverflow}
	}
	put.Items[0].Value = strconv.AppendInt(nil, sum, 10)
	_, err := s.judgePut(now, r, put, d)
	d.Blind = false
	return Result{N: sum}, err
}

// parseInteger parses an integer in the form that both JSON and Redis accept: without plus sign, leading zeros, decimal
// point and exponent.
func parseInteger(text []byte) (int64, error) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != string(text) {
		return 0, fmt.Errorf("%w: %w", errs.ErrInvalid, ErrNotInteger)
	}
	return n, nil
}

func (s *State) judgeExpire(now Moment, op OpExpire, d *Delta) Result {
	it := s.live(op.Name, now.Tick)
	switch {
	case it == nil:
		return Result{}
	case op.TTL == 0:
		d.add(Change{Kind: ChangeDelete, Name: op.Name})
	default:
		d.add(Change{Kind: ChangePut, Name: op.Name, Value: it.value, Deadline: deadline(now.Tick, op.TTL)})
	}
	return Result{N: 1}
}

func (s *State) judgeClear(now Moment, d *Delta) (res Result) {
	for it := range s.use.all {
		if !it.over(now.Tick) {
			res.N++
		}
		d.add(Change{Kind: ChangeDelete, Name: it.name})
	}
	return res
}

func (s *State) lastNotes(last int) Result {
	list := s.notes
	if last >= 0 && last < len(list) {
		list = list[len(list)-last:]
	}
	res := Result{Notes: make([]Note, len(list))}
	for i := range list {
		res.Notes[i] = list[i].public()
	}
	return res
}

func (s *State) count(tick int64) Counts {
	c := Counts{Keys: s.keys, Bytes: s.bytes, Notes: len(s.notes), Checkpoints: len(s.marks),
		Task: s.live(taskName, tick) != nil, Created: fromMicro(s.created)}
	s.expiry.over(tick, func(it *item) {
		if isUser(it.name) {
			c.Keys--
			c.Expired++
			c.Bytes -= size(it.name, it.value)
		}
	})
	return c
}
