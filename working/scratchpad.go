package working

import "context"

// Append adds an entry to the scratchpad and returns the entry. All readers see the entries in the same order. If there
// are then more than Options.MaxNotes entries, the oldest ones are deleted.
func (m *Memory) Append(ctx context.Context, text string) (Note, error) {
	if err := checkText("content", text, MaxValue); err != nil {
		return Note{}, err
	}
	res, err := m.do(ctx, OpAppend{Text: text, Keep: limit(m.opts.MaxNotes, DefaultNotes)})
	if err != nil {
		return Note{}, err
	}
	return res.Notes[0], nil
}

// Scratchpad returns the texts of all entries of the scratchpad, the oldest first.
func (m *Memory) Scratchpad(ctx context.Context) ([]string, error) {
	notes, err := m.Notes(ctx, -1)
	texts := make([]string, len(notes))
	for i := range notes {
		texts[i] = notes[i].Text
	}
	return texts, err
}

// Notes returns the last n entries of the scratchpad with their times, the oldest first. If n is negative, it returns
// all entries.
func (m *Memory) Notes(ctx context.Context, n int) ([]Note, error) {
	res, err := m.do(ctx, OpNotes{Last: max(n, -1)})
	return res.Notes, err
}

// ClearScratchpad removes all entries of the scratchpad and returns their number.
func (m *Memory) ClearScratchpad(ctx context.Context) (int, error) {
	res, err := m.do(ctx, OpClearNotes{})
	return int(res.N), err
}
