package crash

// KeepFreed begins to remember what the blocks hold that files give up: those of removed
// files, and those behind the end of truncated ones. Later boots go on with it. Nothing
// is ever taken to be used again, and what was written may have reached the disk at any
// time, synced or not: the worst that somebody who reads the device can find. A file that
// has lost its last name before is not among them, though somebody may have it open still.
func (d *Disk) KeepFreed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keepsFreed = true
}

// Freed is what was given up since KeepFreed: a piece for each content that the blocks of
// a file may have.
func (d *Disk) Freed() []Piece {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Piece(nil), d.freed...)
}

// Piece is what blocks of a file hold that are free now.
type Piece struct {
	Name string // the last element of the last name that the file had
	Data []byte
}

// free remembers what the blocks of a file hold from an offset on.
func (d *Disk) free(in *inode, from int64) {
	if !d.keepsFreed || in.early || in.entries != nil {
		return
	}
	for _, c := range []*content{&in.cache, &in.disk} {
		size := int64(len(c.pages)) * pageSize
		if from >= size {
			continue
		}
		b := make([]byte, size-from)
		whole := content{pages: c.pages, size: size}
		whole.read(b, from)
		d.freed = append(d.freed, Piece{in.name, b})
	}
	for _, w := range in.pending {
		if end := w.off + int64(len(w.data)); len(w.data) > 0 && end > from {
			d.freed = append(d.freed, Piece{in.name, w.data[max(0, from-w.off):]})
		}
	}
}
