// A page that is loaded again has its token still, in this tab; one that is wrong is forgotten.
const kept = sessionStorage.getItem("token");
if (location.search) sessionStorage.removeItem("token");
else if (kept) location.replace(`/?token=${encodeURIComponent(kept)}${location.hash}`);
