"""Java and Kotlin: Maven and Gradle."""

from agentflow.core.languages import CheckRule
from agentflow.runners.runner import TestRunner

_SUREFIRE = r"Tests run: (?P<total>\d+), Failures: (?P<failed>\d+), Errors: (?P<errors>\d+), "
_JDK = ("java", "install a JDK")
_LOOKS = ("enforcer", "rat", "checkstyle", "spotless.check", "animal.sniffer", "jacoco")
MAVEN = TestRunner(
    name="Maven",
    program=r"(?:mvn|\./mvnw)",
    language="Java",
    bare="".join(f" -D{each}.skip" for each in _LOOKS),
    variables={"MAVEN_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},  # half the processor time of a run
    rules=(
        CheckRule(
            command="mvn -B test",
            manifest=("pom.xml",),
            files="**/src/test/**",
            programs=(("mvn", "install Maven"),),
            wrapper="mvnw",
            runtime=_JDK,
        ),
    ),
    leaves="*/target/*-reports/TEST-*.xml",
    total=rf"(?:\[\w+\] )?{_SUREFIRE}Skipped: (?P<skipped>\d+)",
    adds_up=True,
    one={"mvn": "{} -Dtest=CLASS#METHOD -Dsurefire.failIfNoSpecifiedTests=false"},
    several=",",
)
GRADLE = TestRunner(
    name="Gradle",
    program=r"(?:gradle|\./gradlew)",
    language="Java",
    rules=(
        CheckRule(
            command="gradle --no-daemon test",
            manifest=("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
            files="**/src/test/**",
            programs=(("gradle", "install Gradle"),),
            wrapper="gradlew",
            runtime=_JDK,
        ),
    ),
    leaves="*/build/test-results/*/TEST-*.xml",
    one={"gradle": "{} --tests CLASS.METHOD"},
    several=" ",
)
