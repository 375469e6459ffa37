package commit

import (
	"context"

	"github.com/varve-db/varve/internal/engine"
)

// purged returns an error if the text was purged, and the operation or config.json refuses purged texts.
func (cm *Committer) purged(o *Op, k *engine.Kind, id, text string) error {
	if o.Conds.ForcePurged || o.Derived || o.Cause != 0 ||
		!o.Conds.RefusePurged && !cm.engine.Settings().Now().BlockPurged {
		return nil
	}
	return cm.engine.CheckText(context.Background(), k, id, text)
}

// lift removes from the record of purged texts the texts that the operations have stored again on purpose. An error
// about one text does not end lift, because the texts are stored already.
func (cm *Committer) lift(ctx context.Context, ops []Op) {
	for i := range ops {
		o := &ops[i]
		if !o.Conds.ForcePurged || o.deletes() {
			continue
		}
		id, text := o.ID, ""
		if o.Memory != nil {
			id, text = o.Memory.ID, o.Memory.Content
		} else {
			text = engine.TextOf(&engine.Parsed{Group: o.Assembly}, nil)
		}
		if err := cm.engine.LiftText(ctx, o.kind, id, text); err != nil {
			cm.engine.Env().Logger.Warn("a text was stored again, but is still recorded as purged", "err", err)
		}
	}
}
