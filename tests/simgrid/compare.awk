# awk -f compare.awk EXPECTED GOT: do two outputs of `offsim flows` agree? Prints the worst difference and where
# it is; status 1 when a flow is missing, out of order, no number, or off by more than 1e-6 of its finish time.
#
# One picosecond is free: offsim's clock counts whole picoseconds and rounds the end of a transfer up, so 1e-12 s
# is its resolution, which is more than 1e-6 of a finish time below a microsecond. What earlier roundings do to
# later events counts in full; it can be more than they are themselves, where fast and slow links meet.
BEGIN {
	FS = ","
	tolerance = 1e-6
	resolution_s = 1e-12
	status = 0
}
FNR == 1 && $0 == "id,finish_s" { next }
NR == FNR {
	id[++expected] = $1
	finish_s[expected] = $2
	next
}
{
	got++
	if (status)
		next
	if (got > expected || $1 != id[got])
		fail("'" $1 "' where '" id[got] "' is due")
	else if (NF != 2 || $2 !~ /^[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?$/)
		fail("'" $0 "' is not an id and a number")
	else {
		off_s = $2 - finish_s[got]
		off_s = (off_s < 0 ? -off_s : off_s) - resolution_s
		if (off_s > worst * finish_s[got]) {
			worst = off_s / finish_s[got]
			where = $1 ": " $2 " for " finish_s[got]
		}
	}
}
function fail(why) {
	print why
	status = 1
}
END {
	if (!status && got != expected)
		fail(got + 0 " flows instead of " expected)
	if (!status && (expected == 0 || worst > tolerance))
		status = 1
	printf "worst relative difference %.2g%s\n", worst, (where != "" ? " (" where ")" : "")
	exit status
}
