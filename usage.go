package varve

import "context"

// Usage is the size of the store, as counted by the limits of config.json.
type Usage struct {
	Memories int64 // number of memories in the files, including Expired
	Bytes    int64 // bytes of the files of these memories
	Expired  int64 // number of memories that have expired and are not deleted yet; Memories includes them
}

// Usage returns the size of the store. A call does not take longer in a larger store.
func (ad Admin) Usage(ctx context.Context) (Usage, error) {
	if err := ad.st.inner.Engine.BeginUse(); err != nil {
		return Usage{}, err
	}
	defer ad.st.inner.Engine.EndUse()
	all, _, err := ad.st.inner.Counts.Tally.Look(ctx, nil)
	if err != nil {
		return Usage{}, err
	}
	_, expired, err := ad.st.inner.Engine.Expiring().Count(ctx, ad.st.inner.Engine.Env().Clock())
	return Usage{Memories: all.N, Bytes: all.Bytes, Expired: expired}, err
}
