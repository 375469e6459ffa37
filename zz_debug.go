package varve

import "github.com/varve-db/varve/repair"

func (st *Store) DebugSource() repair.Source {
	return repair.Source{FS: st.fs, Dir: st.dir, Log: st.log, State: &st.state, Codec: &st.codec, Sight: st.sight}
}
