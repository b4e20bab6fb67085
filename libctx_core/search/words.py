"""Word lists of the analysis: generic English function words and cue words, nothing learnt."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP_WORDS = _set("""
    a about above after again against all also am an and any are aren as at be because been before being below
    between both but by can cannot could couldn d did didn do does doesn doing don down during each either else
    ever few for from further had hadn has hasn have haven having he her here hers herself him himself his how i
    if in into is isn it its itself just let ll m ma me might mightn more most must mustn my myself needn neither
    no nor not now o of off on once only or other our ours ourselves out over own per re s same shall shan she
    should shouldn so some such t than that the their theirs them themselves then there these they this those
    though through to too under until up upon us ve very via was wasn we were weren what when where whether which
    while who whom whose why will with within without won would wouldn y yes yet you your yours yourself yourselves
    ain ah anyway aren cuz ok okay oh gonna gotta hey hi hmm huh lol mhm thing things um uh wanna wow yeah yep
    get gets getting got go goes going went really much many lot lots kind sort like well
    """)
"""Words that carry no topic. Contractions are split at the apostrophe, so their halves are here too."""

TIME_WORDS = _set("""
    yesterday today tomorrow tonight last ago week weeks weekend weekends month months year years day days hour hours
    minute minutes morning afternoon evening night noon midnight monday tuesday wednesday thursday friday saturday
    sunday january february march april june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec recently soon since next previous earlier later before after summer winter spring autumn
    fall birthday anniversary christmas easter holiday currently decade decades now just
    """)
"""Words by which a sentence places itself in time."""

FIRST_PERSON = _set("i me my mine myself we us our ours ourselves")

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)

ASK_TIME = _set("when date dates")
"""Question words that ask for a time by themselves."""

ASK_TIME_AFTER_HOW = _set("long often recently soon")
ASK_TIME_AFTER_WHAT = _set("time day date year month week")
