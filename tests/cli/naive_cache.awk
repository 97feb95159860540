# naive_cache.awk: replays bigmoeonedge's route CSV through one cache in the plainest way, everything searched anew for every
# decision. Prints "LOOKUPS HITS DECODE_LOOKUPS DECODE_HITS READ_BYTES".
#
#	awk -f naive_cache.awk -v policy=lru|lfu|belady -v scope=global|layer -v budget=BYTES FILE
BEGIN { FS = "," }
/^# layer=/ {
	split($0, part, /[= ]/)
	size[part[3]] = part[5]
	n_layers++
}
/^[0-9]/ {
	# The whole prefill is one step.
	step = $2 ? $3 "" : "prefill"
	if (!(step in seen_step)) {
		seen_step[step] = 1
		steps[++n_steps] = step
	}
	uses[step, $4] = uses[step, $4] " " $6
}
function used(group,    i, sum) {
	for (i in held)
		if (group == "" || layer_of[i] == group)
			sum += size[layer_of[i]]
	return sum + 0
}
# The first batch after b that uses this item.
function next_use(item, b,    k) {
	for (k = b + 1; k <= n_batches; k++)
		if (k SUBSEP item in in_batch)
			return k
	return 1e9
}
function leaves_before(x, y, b,    nx, ny) {
	if (policy == "belady") {
		nx = next_use(x, b)
		ny = next_use(y, b)
		# Ties go to the lower layer, then expert.
		return nx != ny ? nx > ny : x + 0 < y + 0
	}
	if (policy == "lfu" && count[x] != count[y])
		return count[x] < count[y]
	return last[x] < last[y]
}
END {
	for (s = 1; s <= n_steps; s++)
		for (l = 0; l < n_layers; l++) {
			batch[++n_batches] = uses[steps[s], l]
			batch_layer[n_batches] = l
			batch_decode[n_batches] = steps[s] != "prefill"
			n = split(batch[n_batches], use, " ")
			for (k = 1; k <= n; k++)
				in_batch[n_batches, l * 1000 + use[k]] = 1
		}
	for (b = 1; b <= n_batches; b++) {
		l = batch_layer[b]
		group = scope == "layer" ? l "" : ""
		limit = scope == "layer" ? int(budget / n_layers) : budget
		n = split(batch[b], use, " ")
		for (k = 1; k <= n; k++) {
			item = l * 1000 + use[k]
			layer_of[item] = l
			last[item] = ++clock
			if ((b SUBSEP item) in looked_up)
				continue
			looked_up[b, item] = 1
			count[item]++
			lookups++
			decode_lookups += batch_decode[b]
			if (item in held) {
				hits++
				decode_hits += batch_decode[b]
			} else {
				read_bytes += size[l]
				held[item] = 1
			}
		}
		while (used(group) > limit) {
			victim = ""
			for (item in held)
				if (!((b SUBSEP item) in in_batch) && (group == "" || layer_of[item] == group) &&
					(victim == "" || leaves_before(item, victim, b)))
					victim = item
			if (victim == "")
				break
			delete held[victim]
		}
	}
	printf "%d %d %d %d %d\n", lookups, hits, decode_lookups, decode_hits, read_bytes
}
